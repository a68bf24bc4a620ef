//! Encoding of strings: a heap per vector and the end offset of each string.

use std::borrow::Cow;

use bytes::Bytes;
use fsst::Compressor;

use crate::block_header::lane_bits;
use crate::encode::block_writer::{BodyWriter, bitmap_bytes, empty_header};
use crate::encode::key_statistics::bits_of;
use crate::kernels::{Kernels, Lane, Word};
use crate::text_condition::wide_prefix_key;
use crate::{Encoding, Error, Mask, Result, VECTOR_ROWS, ValidityBitmap, ValueKind, VectorHeader, first_rows_mask};

/// Maximum size of compressed strings, in percent of the original size.
const COMPRESSED_PERCENT_MAX: usize = 85;
/// Minimum size of strings for which a symbol table pays off, in bytes.
const COMPRESSED_BYTES_MIN: usize = 8192;

/// Compression of a block of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// No compression: strings are searched without being copied.
    None,
    /// Symbol table (FSST), if it makes the strings smaller; text shrinks to a third to a half.
    Symbols,
}

/// Layout of the heaps of a block's vectors.
#[derive(Default)]
struct HeapLayout {
    /// Compressed strings; `None` if they are stored uncompressed.
    compressed: Option<Vec<u8>>,
    /// Total length of the heaps.
    length: usize,
    /// End offset of each string in its vector's heap.
    ends: Vec<u32>,
    /// Start of each vector's heap.
    starts: Vec<usize>,
}

pub(super) fn encode(
    values: &[&[u8]],
    validity: Option<ValidityBitmap<'_>>,
    compression: Compression,
) -> Result<Bytes> {
    let masks: Vec<Mask> = values
        .chunks(VECTOR_ROWS)
        .enumerate()
        .map(|(vector, values)| {
            validity
                .map_or_else(|| first_rows_mask(values.len()), |bitmap| bitmap.mask(vector * VECTOR_ROWS, values.len()))
        })
        .collect();
    let non_null = match validity {
        None => Cow::Borrowed(values),
        Some(bitmap) => {
            let value = |(row, value)| if bitmap.is_valid(row) { value } else { [].as_slice() };
            values.iter().copied().enumerate().map(value).collect()
        }
    };
    let bytes: usize = non_null.iter().map(|value| value.len()).sum();
    let compressor = (compression == Compression::Symbols && COMPRESSED_BYTES_MIN <= bytes)
        .then(|| Compressor::train(&non_null.iter().copied().filter(|value| !value.is_empty()).collect()));
    if let Some(compressor) = compressor {
        let compressed = HeapLayout::compressed(&non_null, &compressor)?;
        if compressed.length * 100 < bytes * COMPRESSED_PERCENT_MAX {
            return Ok(write(&non_null, &masks, &compressed, Some(&compressor)));
        }
    }
    Ok(write(&non_null, &masks, &HeapLayout::plain(&non_null)?, None))
}

impl HeapLayout {
    fn plain(values: &[&[u8]]) -> Result<Self> {
        let mut heap = Self::default();
        for values in values.chunks(VECTOR_ROWS) {
            let start = heap.length;
            heap.starts.push(start);
            for value in values {
                heap.length += value.len();
                heap.ends.push(checked_end(heap.length - start)?);
            }
        }
        Ok(heap)
    }

    fn compressed(values: &[&[u8]], compressor: &Compressor) -> Result<Self> {
        let mut heap = Self::default();
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(VECTOR_ROWS));
        for values in values.chunks(VECTOR_ROWS) {
            let start = bytes.len();
            heap.starts.push(start);
            ends.clear();
            compressor.compress_bulk_into::<{ Compressor::DEFAULT_BULK_LANES }>(values, &mut bytes, &mut ends);
            for at in &ends {
                heap.ends.push(checked_end(*at as usize - start)?);
            }
        }
        heap.length = bytes.len();
        heap.compressed = Some(bytes);
        Ok(heap)
    }
}

fn checked_end(at: usize) -> Result<u32> {
    u32::try_from(at).map_err(|_| Error::TooLarge("the strings of one vector exceed 4 GiB"))
}

fn write(values: &[&[u8]], masks: &[Mask], heap: &HeapLayout, compressor: Option<&Compressor>) -> Bytes {
    let bounds: Vec<Option<(i128, i128)>> =
        values.chunks(VECTOR_ROWS).zip(masks).map(|(values, mask)| prefix_bounds(values, mask)).collect();
    let entry = |(vector, bounds): (usize, &Option<(i128, i128)>)| {
        let valid: u32 = masks[vector].iter().map(|word| word.count_ones()).sum();
        let rows = (values.len() - vector * VECTOR_ROWS).min(VECTOR_ROWS);
        // Entries have the first 8 of the 16 bytes.
        let (min, max) = bounds.map_or((0, 0), |(min, max)| ((min >> 64) as i64, (max >> 64) as i64));
        VectorHeader {
            base: heap.starts[vector] as i64,
            min,
            max,
            null_count: (rows - valid as usize) as u16,
            ..VectorHeader::default()
        }
    };
    let entries: Vec<VectorHeader> = bounds.iter().enumerate().map(entry).collect();
    let nulls = entries.iter().map(|entry| usize::from(entry.null_count)).sum();
    let whole =
        bounds.into_iter().flatten().reduce(|(min, max), (least, greatest)| (min.min(least), max.max(greatest)));
    let (min, max) = whole.unwrap_or_default();
    let mut header = empty_header(ValueKind::Text, 0, values.len(), nulls);
    (header.min, header.max, header.vector_headers, header.has_validity_bitmap) = (min, max, entries, nulls != 0);
    header.encoding = if compressor.is_some() { Encoding::CompressedHeap } else { Encoding::Heap };
    header.width = bits_of(heap.ends.iter().copied().max().unwrap_or_default().into());
    header.lane_bits = lane_bits(header.width);
    let mut body = BodyWriter::new(values.len(), heap.length + heap.ends.len() * 5 + 4096);
    if header.has_validity_bitmap {
        body.append_section(&bitmap_bytes(masks));
    }
    let words =
        body.append_zeroed_section(masks.len() * usize::from(header.width) * size_of::<Word>()).as_chunks_mut().0;
    match header.lane_bits {
        8 => pack_ends::<u8>(heap, header.width, words),
        16 => pack_ends::<u16>(heap, header.width, words),
        _ => pack_ends::<u32>(heap, header.width, words),
    }
    if let Some(compressor) = compressor {
        let symbols = compressor.symbol_table();
        header.item_count = symbols.len();
        let mut stored: Vec<u8> = symbols.iter().flat_map(|symbol| symbol.to_u64().to_le_bytes()).collect();
        stored.extend_from_slice(&compressor.symbol_lengths()[..symbols.len()]);
        body.append_section(&stored);
    }
    match &heap.compressed {
        Some(bytes) => body.append_section(bytes),
        None => body.append_concatenated_section(values.iter().copied()),
    }
    body.finish(header)
}

/// Returns the 16-byte prefix keys of the least and the greatest string of a vector.
fn prefix_bounds(values: &[&[u8]], mask: &Mask) -> Option<(i128, i128)> {
    let non_null = values.iter().enumerate().filter(|(row, _)| is_set(mask, *row));
    non_null.map(|(_, value)| wide_prefix_key(value)).fold(None, |bounds, key| {
        Some(bounds.map_or((key, key), |(min, max): (i128, i128)| (min.min(key), max.max(key))))
    })
}

fn is_set(mask: &Mask, row: usize) -> bool {
    mask[row / 64] >> (row % 64) & 1 == 1
}

fn pack_ends<T: Lane>(heap: &HeapLayout, width: u8, words: &mut [Word]) {
    let width = usize::from(width);
    if width == 0 {
        return;
    }
    for (ends, words) in heap.ends.chunks(VECTOR_ROWS).zip(words.chunks_exact_mut(width)) {
        // Rows beyond the last one are empty strings.
        let last = ends.last().copied().unwrap_or_default();
        let mut lanes = [T::truncate(last.into()); VECTOR_ROWS];
        for (lane, end) in lanes.iter_mut().zip(ends) {
            *lane = T::truncate((*end).into());
        }
        Kernels::get().pack(&lanes, width, words);
    }
}
