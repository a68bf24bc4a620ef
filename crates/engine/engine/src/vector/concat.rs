//! Concatenation of several columns into one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, StringViewArray, StringViewBuilder};
use types::ValueGuard;

use super::opaque;
use crate::{Bits, Bounds, Column, Data, Error, Form, NONE, Result, Strings, TextNumbers};

/// A merged dictionary with more entries than this, and more than an eighth of the rows, is replaced by plain
/// strings.
const FEW_STRINGS: usize = 1 << 16;

/// Block size in bytes of the buffers that strings are copied to.
const HEAP_BYTES: u32 = 1 << 22;

/// Concatenates the rows of all pieces in order. Strings and opaque values are always copied, so that large shared
/// buffers are released.
pub(crate) fn concat(pieces: Vec<Column>, form: Form) -> Result<Column> {
    if pieces.len() == 1
        && let Some(piece) = pieces.first()
        && !matches!(piece.data, Data::Texts(_) | Data::Opaque(_))
    {
        return Ok(piece.clone());
    }
    let rows = pieces.iter().map(Column::rows).sum();
    let validity = validity(&pieces, rows);
    let data = match form {
        Form::Bools => bools(&pieces, rows)?,
        Form::Ints | Form::Wide => numbers(&pieces, rows, form)?,
        Form::Floats => floats(&pieces, rows)?,
        Form::Texts => match codes(&pieces, rows)? {
            Some(codes) => codes,
            None => texts(&pieces)?,
        },
        Form::Opaque => arrays(&pieces)?,
    };
    Ok(Column { data, validity })
}

/// Returns the approximate bytes of a column after it has been copied. String arrays often use only a small part of
/// buffers shared by many batches.
pub(crate) fn bytes_copied(column: &Column) -> usize {
    match &column.data {
        Data::Texts(texts) => texts.len() * 16 + texts.total_buffer_bytes_used(),
        _ => column.memory_bytes(),
    }
}

fn validity(pieces: &[Column], rows: usize) -> Option<Arc<Bits>> {
    if pieces.iter().all(|piece| piece.validity.is_none()) {
        return None;
    }
    let bits = pieces.iter().map(|piece| (piece.rows(), piece.validity.as_deref()));
    Some(Arc::new(append(bits, rows)))
}

/// Concatenates bitmaps; a missing bitmap counts as all bits set.
pub(crate) fn append<'a>(pieces: impl Iterator<Item = (usize, Option<&'a Bits>)>, rows: usize) -> Bits {
    let mut words = vec![0; rows.div_ceil(64)];
    let mut start = 0;
    for (piece_rows, bits) in pieces {
        for index in 0..piece_rows.div_ceil(64) {
            let kept = (piece_rows - index * 64).min(64);
            let word = bits.map_or(u64::MAX, |bits| bits.words()[index]) & (u64::MAX >> (64 - kept));
            let (at, shift) = ((start + index * 64) / 64, (start + index * 64) % 64);
            words[at] |= word << shift;
            if shift + kept > 64 {
                words[at + 1] |= word >> (64 - shift);
            }
        }
        start += piece_rows;
    }
    Bits::of_words(words, rows)
}

fn bools(pieces: &[Column], rows: usize) -> Result<Data> {
    let mut bits = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let Data::Bools(values) = &piece.data else { return Err(other_form()) };
        bits.push((values.rows(), Some(&**values)));
    }
    Ok(Data::Bools(Arc::new(append(bits.into_iter(), rows))))
}

fn numbers(pieces: &[Column], rows: usize, form: Form) -> Result<Data> {
    let is_wide = pieces.iter().any(|piece| matches!(piece.data, Data::Wide(_)));
    if is_wide || (pieces.is_empty() && form == Form::Wide) {
        let mut all = Vec::with_capacity(rows);
        for piece in pieces {
            match &piece.data {
                Data::Wide(values) => all.extend_from_slice(values),
                Data::Ints { values, .. } => all.extend(values.iter().map(|value| i128::from(*value))),
                _ => return Err(other_form()),
            }
        }
        return Ok(Data::Wide(Arc::new(all)));
    }
    let mut all = Vec::with_capacity(rows);
    let mut all_bounds: Option<Bounds> = None;
    for piece in pieces {
        let Data::Ints { values, bounds } = &piece.data else { return Err(other_form()) };
        all.extend_from_slice(values);
        all_bounds = Some(all_bounds.map_or(*bounds, |all| all.or(*bounds)));
    }
    Ok(Data::Ints { values: Arc::new(all), bounds: all_bounds.unwrap_or_else(|| Bounds::of(0)) })
}

fn floats(pieces: &[Column], rows: usize) -> Result<Data> {
    let mut all = Vec::with_capacity(rows);
    for piece in pieces {
        let Data::Floats(values) = &piece.data else { return Err(other_form()) };
        all.extend_from_slice(values);
    }
    Ok(Data::Floats(Arc::new(all)))
}

/// Concatenates dictionary-encoded pieces under one dictionary. Returns `None` if a piece is not dictionary-encoded
/// or the merged dictionary has too many entries.
fn codes(pieces: &[Column], rows: usize) -> Result<Option<Data>> {
    let mut first: Option<&Arc<Strings>> = None;
    let mut are_shared = true;
    for piece in pieces {
        let Data::Codes { strings, .. } = &piece.data else { return Ok(None) };
        are_shared &= first.get_or_insert(strings).id() == strings.id();
    }
    let Some(first) = first else { return Ok(None) };
    let mut all = Vec::with_capacity(rows);
    if are_shared {
        for piece in pieces {
            let Data::Codes { codes, .. } = &piece.data else { return Err(other_form()) };
            all.extend_from_slice(codes);
        }
        return Ok(Some(Data::Codes { codes: Arc::new(all), strings: Arc::clone(first) }));
    }

    let most = FEW_STRINGS.max(rows / 8);
    let mut merged = TextNumbers::default();
    let mut numbers_of: HashMap<u64, Vec<u32>> = HashMap::new();
    for piece in pieces {
        let Data::Codes { codes, strings } = &piece.data else { return Err(other_form()) };
        let numbers = numbers_of.entry(strings.id()).or_insert_with(|| vec![NONE; strings.len()]);
        for (row, code) in codes.iter().enumerate() {
            let Some(number) = numbers.get_mut(*code as usize) else {
                if piece.is_valid(row) {
                    return Err(Error::Form("a dictionary index is out of range"));
                }
                all.push(0);
                continue;
            };
            if *number == NONE {
                *number = merged.number(strings.get(*code))?;
            }
            all.push(*number);
        }
        if merged.len() > most {
            return Ok(None);
        }
    }
    let mut strings = builder();
    merged.iter().for_each(|string| strings.append_value(string));
    Ok(Some(Data::Codes { codes: Arc::new(all), strings: Strings::new(strings.finish()) }))
}

/// Copies strings into new buffers, because pieces often use only few rows of large buffers.
fn texts(pieces: &[Column]) -> Result<Data> {
    let mut all = builder();
    for piece in pieces {
        match &piece.data {
            Data::Texts(texts) => copy(piece, texts, |row| row, &mut all)?,
            Data::Codes { codes, strings } => copy(piece, strings.values(), |row| codes[row] as usize, &mut all)?,
            _ => return Err(other_form()),
        }
    }
    Ok(Data::Texts(all.finish()))
}

fn arrays(pieces: &[Column]) -> Result<Data> {
    let mut arrays = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let Data::Opaque(array) = &piece.data else { return Err(other_form()) };
        arrays.push(array);
    }
    Ok(Data::Opaque(opaque::together(&arrays)?))
}

/// Appends the strings of one piece; `position` maps a row to the index of its string.
fn copy(
    piece: &Column,
    texts: &StringViewArray,
    position: impl Fn(usize) -> usize,
    all: &mut StringViewBuilder,
) -> Result<()> {
    let mut guard = ValueGuard::default();
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

fn builder() -> StringViewBuilder {
    StringViewBuilder::new().with_fixed_block_size(HEAP_BYTES)
}

fn other_form() -> Error {
    Error::Form("pieces of a column differ in their physical type")
}
