//! Concatenation of several columns into one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, StringViewArray, StringViewBuilder};
use types::ValueMemoryCounter;

use super::opaque_arrays;
use crate::{Bitmap, Bounds, Column, ColumnData, Dictionary, Error, NONE, PhysicalType, Result, StringInterner};

/// A merged dictionary with more entries than this, and more than an eighth of the rows, is replaced by plain
/// strings.
const MERGED_ENTRIES_MAX: usize = 1 << 16;

/// Block size in bytes of the buffers that strings are copied to.
const STRING_BLOCK_BYTES: u32 = 1 << 22;

/// Concatenates the rows of all pieces in order. Strings and opaque values are always copied, so that large shared
/// buffers are released.
pub(crate) fn concat(pieces: Vec<Column>, form: PhysicalType) -> Result<Column> {
    if pieces.len() == 1
        && let Some(piece) = pieces.first()
        && !matches!(piece.data, ColumnData::Texts(_) | ColumnData::Opaque(_))
    {
        return Ok(piece.clone());
    }
    let rows = pieces.iter().map(Column::rows).sum();
    let validity = concat_validity(&pieces, rows);
    let data = match form {
        PhysicalType::Bools => concat_bools(&pieces, rows)?,
        PhysicalType::Ints | PhysicalType::WideInts => concat_numbers(&pieces, rows, form)?,
        PhysicalType::Floats => concat_floats(&pieces, rows)?,
        PhysicalType::Texts => match concat_dictionaries(&pieces, rows)? {
            Some(codes) => codes,
            None => concat_texts(&pieces)?,
        },
        PhysicalType::Opaque => concat_arrays(&pieces)?,
    };
    Ok(Column { data, validity })
}

/// Returns the approximate bytes of a column after it has been copied. String arrays often use only a small part of
/// buffers shared by many batches.
pub(crate) fn copied_bytes(column: &Column) -> usize {
    match &column.data {
        ColumnData::Texts(texts) => texts.len() * 16 + texts.total_buffer_bytes_used(),
        _ => column.memory_bytes(),
    }
}

fn concat_validity(pieces: &[Column], rows: usize) -> Option<Arc<Bitmap>> {
    if pieces.iter().all(|piece| piece.validity.is_none()) {
        return None;
    }
    let bits = pieces.iter().map(|piece| (piece.rows(), piece.validity.as_deref()));
    Some(Arc::new(concat_bitmaps(bits, rows)))
}

/// Concatenates bitmaps; a missing bitmap counts as all bits set.
pub(crate) fn concat_bitmaps<'a>(pieces: impl Iterator<Item = (usize, Option<&'a Bitmap>)>, rows: usize) -> Bitmap {
    let mut words = vec![0; rows.div_ceil(64)];
    let mut start = 0;
    for (piece_rows, bits) in pieces {
        for index in 0..piece_rows.div_ceil(64) {
            let bits_in_word = (piece_rows - index * 64).min(64);
            let word = bits.map_or(u64::MAX, |bits| bits.words()[index]) & (u64::MAX >> (64 - bits_in_word));
            let (at, shift) = ((start + index * 64) / 64, (start + index * 64) % 64);
            words[at] |= word << shift;
            if shift + bits_in_word > 64 {
                words[at + 1] |= word >> (64 - shift);
            }
        }
        start += piece_rows;
    }
    Bitmap::from_words(words, rows)
}

fn concat_bools(pieces: &[Column], rows: usize) -> Result<ColumnData> {
    let mut bits = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let ColumnData::Bools(values) = &piece.data else { return Err(type_mismatch()) };
        bits.push((values.rows(), Some(&**values)));
    }
    Ok(ColumnData::Bools(Arc::new(concat_bitmaps(bits.into_iter(), rows))))
}

fn concat_numbers(pieces: &[Column], rows: usize, form: PhysicalType) -> Result<ColumnData> {
    let is_wide = pieces.iter().any(|piece| matches!(piece.data, ColumnData::WideInts(_)));
    if is_wide || (pieces.is_empty() && form == PhysicalType::WideInts) {
        let mut all = Vec::with_capacity(rows);
        for piece in pieces {
            match &piece.data {
                ColumnData::WideInts(values) => all.extend_from_slice(values),
                ColumnData::Ints { values, .. } => all.extend(values.iter().map(|value| i128::from(*value))),
                _ => return Err(type_mismatch()),
            }
        }
        return Ok(ColumnData::WideInts(Arc::new(all)));
    }
    let mut all = Vec::with_capacity(rows);
    let mut all_bounds: Option<Bounds> = None;
    for piece in pieces {
        let ColumnData::Ints { values, bounds } = &piece.data else { return Err(type_mismatch()) };
        all.extend_from_slice(values);
        all_bounds = Some(all_bounds.map_or(*bounds, |all| all.union(*bounds)));
    }
    Ok(ColumnData::Ints { values: Arc::new(all), bounds: all_bounds.unwrap_or_else(|| Bounds::from_value(0)) })
}

fn concat_floats(pieces: &[Column], rows: usize) -> Result<ColumnData> {
    let mut all = Vec::with_capacity(rows);
    for piece in pieces {
        let ColumnData::Floats(values) = &piece.data else { return Err(type_mismatch()) };
        all.extend_from_slice(values);
    }
    Ok(ColumnData::Floats(Arc::new(all)))
}

/// Concatenates dictionary-encoded pieces under one dictionary. Returns `None` if a piece is not dictionary-encoded
/// or the merged dictionary has too many entries.
fn concat_dictionaries(pieces: &[Column], rows: usize) -> Result<Option<ColumnData>> {
    let mut first: Option<&Arc<Dictionary>> = None;
    let mut are_shared = true;
    for piece in pieces {
        let ColumnData::Dictionary { dictionary: strings, .. } = &piece.data else { return Ok(None) };
        are_shared &= first.get_or_insert(strings).id() == strings.id();
    }
    let Some(first) = first else { return Ok(None) };
    let mut all = Vec::with_capacity(rows);
    if are_shared {
        for piece in pieces {
            let ColumnData::Dictionary { indices: codes, .. } = &piece.data else { return Err(type_mismatch()) };
            all.extend_from_slice(codes);
        }
        return Ok(Some(ColumnData::Dictionary { indices: Arc::new(all), dictionary: Arc::clone(first) }));
    }

    let most = MERGED_ENTRIES_MAX.max(rows / 8);
    let mut merged = StringInterner::default();
    let mut numbers_of: HashMap<u64, Vec<u32>> = HashMap::new();
    for piece in pieces {
        let ColumnData::Dictionary { indices: codes, dictionary: strings } = &piece.data else {
            return Err(type_mismatch());
        };
        let numbers = numbers_of.entry(strings.id()).or_insert_with(|| vec![NONE; strings.len()]);
        for (row, code) in codes.iter().enumerate() {
            let Some(number) = numbers.get_mut(*code as usize) else {
                if piece.is_valid(row) {
                    return Err(Error::Internal("a dictionary index is out of range"));
                }
                all.push(0);
                continue;
            };
            if *number == NONE {
                *number = merged.intern(strings.get(*code))?;
            }
            all.push(*number);
        }
        if merged.len() > most {
            return Ok(None);
        }
    }
    let mut strings = text_builder();
    merged.iter().for_each(|string| strings.append_value(string));
    Ok(Some(ColumnData::Dictionary { indices: Arc::new(all), dictionary: Dictionary::new(strings.finish()) }))
}

/// Copies strings into new buffers, because pieces often use only few rows of large buffers.
fn concat_texts(pieces: &[Column]) -> Result<ColumnData> {
    let mut all = text_builder();
    for piece in pieces {
        match &piece.data {
            ColumnData::Texts(texts) => copy_texts(piece, texts, |row| row, &mut all)?,
            ColumnData::Dictionary { indices: codes, dictionary: strings } => {
                copy_texts(piece, strings.values(), |row| codes[row] as usize, &mut all)?
            }
            _ => return Err(type_mismatch()),
        }
    }
    Ok(ColumnData::Texts(all.finish()))
}

fn concat_arrays(pieces: &[Column]) -> Result<ColumnData> {
    let mut arrays = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let ColumnData::Opaque(array) = &piece.data else { return Err(type_mismatch()) };
        arrays.push(array);
    }
    Ok(ColumnData::Opaque(opaque_arrays::concat_arrays(&arrays)?))
}

/// Appends the strings of one piece; `position` maps a row to the index of its string.
fn copy_texts(
    piece: &Column,
    texts: &StringViewArray,
    position: impl Fn(usize) -> usize,
    all: &mut StringViewBuilder,
) -> Result<()> {
    let mut guard = ValueMemoryCounter::default();
    for row in 0..piece.rows() {
        let position = position(row);
        // The placeholder of a NULL row need not be a valid index.
        let is_there = piece.is_valid(row) && position < texts.len();
        let text = if is_there { texts.value(position) } else { "" };
        guard.add(text.len())?;
        all.append_value(text);
    }
    Ok(())
}

fn text_builder() -> StringViewBuilder {
    StringViewBuilder::new().with_fixed_block_size(STRING_BLOCK_BYTES)
}

fn type_mismatch() -> Error {
    Error::Internal("the chunks of a column differ in their physical type")
}
