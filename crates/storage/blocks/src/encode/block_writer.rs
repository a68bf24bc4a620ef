//! Writing of blocks in the chosen encoding.

use bytes::Bytes;

use crate::block_header::{ALIGNMENT, align_up, lane_bits};
use crate::encode::choose_encoding::EncodingPlan;
use crate::encode::column_keys::{Keys, null_rows};
use crate::encode::encode_run_values;
use crate::encode::key_statistics::{KeyStatistics, bits_of};
use crate::kernels::{Kernels, Lane, Word};
use crate::row_set::positions;
use crate::{BlockHeader, Encoding, Mask, VECTOR_ROWS, ValueKind};

/// Writer of a block's sections, in memory that is aligned for kernels and has space for the header in front.
pub(crate) struct BodyWriter {
    /// Buffer; the block starts at `start`.
    bytes: Vec<u8>,
    start: usize,
}

impl BodyWriter {
    /// Creates a writer with memory reserved for a body of `body` bytes.
    pub(crate) fn new(rows: usize, body: usize) -> Self {
        let mut bytes: Vec<u8> = Vec::with_capacity(BlockHeader::header_bytes_for(rows) + body + 2 * ALIGNMENT);
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        bytes.resize(start + BlockHeader::header_bytes_for(rows), 0);
        Self { bytes, start }
    }

    /// Appends an aligned section of zeros and returns it for writing.
    pub(crate) fn append_zeroed_section(&mut self, bytes: usize) -> &mut [u8] {
        if bytes != 0 {
            self.bytes.resize(self.start + align_up(self.bytes.len() - self.start) + bytes, 0);
        }
        let end = self.bytes.len();
        &mut self.bytes[end - bytes..]
    }

    /// Appends an aligned section.
    pub(crate) fn append_section(&mut self, bytes: &[u8]) {
        self.append_concatenated_section([bytes]);
    }

    /// Appends an aligned section of concatenated parts.
    pub(crate) fn append_concatenated_section<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>) {
        let unaligned = self.bytes.len();
        self.bytes.resize(self.start + align_up(unaligned - self.start), 0);
        let begin = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        if self.bytes.len() == begin {
            // An empty section needs no padding.
            self.bytes.truncate(unaligned);
        }
    }

    /// Writes the header and returns the block.
    pub(crate) fn finish(mut self, mut header: BlockHeader) -> Bytes {
        header.length = self.bytes.len() - self.start;
        header.write(&mut self.bytes[self.start..]);
        if self.bytes[self.start..].as_ptr().align_offset(ALIGNMENT) == 0 {
            return Bytes::from(self.bytes).slice(self.start..);
        }
        // The buffer was reallocated and has lost its alignment.
        let mut moved = Self::new(0, header.length);
        moved.bytes.truncate(moved.start);
        moved.bytes.extend_from_slice(&self.bytes[self.start..]);
        Bytes::from(moved.bytes).slice(moved.start..)
    }
}

/// Returns the header from which every encoding starts.
pub(crate) fn empty_header(kind: ValueKind, offset: i128, rows: usize, nulls: usize) -> BlockHeader {
    BlockHeader {
        kind,
        encoding: Encoding::Constant,
        rows,
        null_count: nulls,
        null_is_zero: false,
        has_validity_bitmap: false,
        lane_bits: 8,
        width: 0,
        decimal_exponents: None,
        item_count: 0,
        min: 0,
        max: 0,
        offset,
        length: 0,
        vector_headers: Vec::new(),
    }
}

/// Writes keys in the encoding `plan`.
pub(crate) fn write_block(
    kind: ValueKind,
    offset: i128,
    keys: &Keys<'_>,
    statistics: &KeyStatistics,
    plan: EncodingPlan,
) -> Bytes {
    let mut header = empty_header(kind, offset, keys.rows(), keys.null_count());
    header.vector_headers = statistics.vector_headers.clone();
    let (min, max) = statistics.bounds.unwrap_or_default();
    (header.min, header.max) = (i128::from(min) + offset, i128::from(max) + offset);
    header.null_is_zero = keys.null_count() != 0 && statistics.width.is_some();
    header.lane_bits = lane_bits(statistics.width.unwrap_or(64));
    let expected = match plan {
        EncodingPlan::Constant => 0,
        EncodingPlan::Packed { width } => usize::from(width) * header.vector_headers.len() * size_of::<Word>(),
        EncodingPlan::Runs => statistics.run_count * 10,
        EncodingPlan::Plain => keys.rows() * 8 + keys.rows() / 8,
    };
    let mut body = BodyWriter::new(keys.rows(), expected);
    match plan {
        EncodingPlan::Constant => {}
        EncodingPlan::Packed { width } => {
            header.encoding = Encoding::Packed;
            header.width = width;
            let bases = header.vector_headers.iter().map(|entry| (entry.base, entry.max)).collect();
            let patch_keys = keys.values();
            let numbers = Keys::clone(keys);
            PackingInput { numbers, bases, width, patch_keys, exceptions: None }.write(&mut header, &mut body);
        }
        EncodingPlan::Runs => {
            header.encoding = Encoding::Runs;
            write_runs(keys, &mut header, &mut body);
        }
        EncodingPlan::Plain => {
            header.encoding = Encoding::Plain;
            header.has_validity_bitmap = keys.validity().is_some();
            body.append_section(&bitmap_bytes(keys.validity().unwrap_or_default()));
            let values: Vec<u8> = keys.values().iter().flat_map(|value| value.to_le_bytes()).collect();
            body.append_section(&values);
        }
    }
    body.finish(header)
}

/// Returns the stored form of a validity bitmap.
pub(crate) fn bitmap_bytes(masks: &[Mask]) -> Vec<u8> {
    masks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

/// Writes floats as decimal digits.
pub(crate) fn write_decimals(
    kind: ValueKind,
    keys: &Keys<'_>,
    statistics: &KeyStatistics,
    packing: &PackingInput<'_>,
    exponents: (u8, u8),
) -> Bytes {
    let mut header = empty_header(kind, 0, keys.rows(), keys.null_count());
    header.vector_headers = statistics.vector_headers.clone();
    let (min, max) = statistics.bounds.unwrap_or_default();
    (header.min, header.max) = (min.into(), max.into());
    (header.encoding, header.decimal_exponents) = (Encoding::Packed, Some(exponents));
    (header.width, header.lane_bits) = (packing.width, lane_bits(packing.width));
    header.null_is_zero = keys.null_count() != 0;
    let mut body =
        BodyWriter::new(keys.rows(), usize::from(packing.width) * header.vector_headers.len() * size_of::<Word>());
    packing.write(&mut header, &mut body);
    body.finish(header)
}

/// Numbers to pack: a block's keys, or their decimal digits.
pub(crate) struct PackingInput<'a> {
    pub(crate) numbers: Keys<'a>,
    /// Base and maximum of each vector.
    pub(crate) bases: Vec<(i64, i64)>,
    pub(crate) width: u8,
    /// Keys to store in patches, by row.
    pub(crate) patch_keys: &'a [i64],
    /// Masks of the rows that must be patches, by vector.
    pub(crate) exceptions: Option<&'a [Mask]>,
}

impl PackingInput<'_> {
    fn write(&self, header: &mut BlockHeader, body: &mut BodyWriter) {
        header.width = self.width;
        match lane_bits(self.width) {
            8 => self.write_lanes::<u8>(header, body),
            16 => self.write_lanes::<u16>(header, body),
            32 => self.write_lanes::<u32>(header, body),
            _ => self.write_lanes::<u64>(header, body),
        }
    }

    fn write_lanes<T: Lane>(&self, header: &mut BlockHeader, body: &mut BodyWriter) {
        let kernels = Kernels::get();
        let width = usize::from(self.width);
        let words = body.append_zeroed_section(header.vector_headers.len() * width * size_of::<Word>());
        let words: &mut [Word] = words.as_chunks_mut().0;
        let mut patches = Patches::default();
        for (vector, (numbers, mask)) in self.numbers.vectors().enumerate() {
            let entry = &mut header.vector_headers[vector];
            entry.base = self.bases[vector].0;
            let mut padded = [entry.base; VECTOR_ROWS];
            padded[..numbers.len()].copy_from_slice(numbers);
            let mut lanes = [T::default(); VECTOR_ROWS];
            kernels.narrow(&padded, entry.base, &mut lanes);
            let patched = self.patched_rows(vector, &padded, &mask);
            entry.first_patch = patches.rows.len() as u32;
            for row in positions(&patched) {
                // Patches get the least offset that is not NULL.
                lanes[row] = T::truncate(header.null_is_zero.into());
                patches.keys.push(self.patch_keys[vector * VECTOR_ROWS + row]);
                patches.rows.push(row as u16);
            }
            entry.patch_count = (patches.rows.len() - entry.first_patch as usize) as u16;
            if entry.null_count != 0 {
                null_rows(&mask, numbers.len()).for_each(|row| lanes[row] = T::default());
            }
            kernels.pack(&lanes, width, &mut words[vector * width..][..width]);
        }
        header.item_count = patches.rows.len();
        body.append_section(&patches.keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<_>>());
        body.append_section(&patches.rows.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<_>>());
    }

    /// Returns the mask of the rows of a vector that must be patches.
    fn patched_rows(&self, vector: usize, numbers: &[i64; VECTOR_ROWS], valid: &Mask) -> Mask {
        let mut mask = self.exceptions.map_or_else(Mask::default, |exceptions| exceptions[vector]);
        let (base, max) = self.bases[vector];
        if self.width < bits_of(max.wrapping_sub(base) as u64) {
            let mut lanes = [0; VECTOR_ROWS];
            Kernels::get().narrow(numbers, base, &mut lanes);
            let beyond = Kernels::get().mask_between(&lanes, 1 << self.width, u64::MAX - (1 << self.width));
            for ((word, beyond), valid) in mask.iter_mut().zip(beyond).zip(valid) {
                *word |= beyond & valid;
            }
        }
        mask
    }
}

#[derive(Default)]
struct Patches {
    keys: Vec<i64>,
    rows: Vec<u16>,
}

fn write_runs(keys: &Keys<'_>, header: &mut BlockHeader, body: &mut BodyWriter) {
    let (mut last_rows, mut values, mut masks) = (Vec::new(), Vec::new(), vec![]);
    let all = keys.values();
    let mut start = 0;
    while start < all.len() {
        let is_valid = keys.is_valid(start);
        let continues_run = |row: &usize| match (keys.is_valid(*row), is_valid) {
            (true, true) => all[*row] == all[start],
            (next, this) => next == this,
        };
        let end = (start + 1..all.len()).find(|row| !continues_run(row)).unwrap_or(all.len());
        let run = values.len();
        if run % VECTOR_ROWS == 0 {
            masks.push(Mask::default());
        }
        masks[run / VECTOR_ROWS][run % VECTOR_ROWS / 64] |= u64::from(is_valid) << (run % 64);
        last_rows.extend_from_slice(&((end - 1) as u16).to_le_bytes());
        values.push(all[start]);
        start = end;
    }
    header.item_count = values.len();
    body.append_section(&last_rows);
    body.append_section(&encode_run_values(header.kind, header.offset, &Keys::with_masks(&values, masks)));
}
