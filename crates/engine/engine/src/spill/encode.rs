//! Encoding of rows for spill files.
//!
//! The bytes are the numbers of rows and of columns, then for each column: its kind, whether it has NULLs, the validity
//! bitmap if so, and its values. Integers are distances from the minimum; strings are lengths and text; dictionary
//! codes follow the dictionary entries in use; arrays of other types start with the type (`opaque_arrays.rs`).

use std::collections::HashMap;

use super::integer_encoding::{ROWS_MAX, put_count, put_numbers};
use super::{column_kind, opaque_arrays};
use crate::vector::concat;
use crate::{Batch, Bitmap, Column, ColumnData, Error, PhysicalType, Result};

/// Minimum number of rows per dictionary entry for which strings are written as codes.
const ROWS_PER_ENTRY_MIN: usize = 2;

/// Encodes the rows of batches with the same columns; [`super::decode`] reads the bytes.
///
/// # Errors
/// [`Error::Internal`] if batches have different columns, or more than 2^22 rows in total.
pub fn encode(batches: &[Batch]) -> Result<Vec<u8>> {
    let rows = batches.iter().map(|batch| batch.rows).sum();
    let columns = batches.first().map_or(0, |batch| batch.columns.len());
    if ROWS_MAX < rows {
        return Err(Error::Internal("more than 2^22 rows to encode together"));
    }
    let mut bytes = Vec::new();
    put_count(&mut bytes, rows);
    put_count(&mut bytes, columns);
    for position in 0..columns {
        let pieces = batches.iter().map(|batch| batch.columns.get(position).cloned());
        let pieces = pieces
            .collect::<Option<Vec<Column>>>()
            .ok_or(Error::Internal("batches to be spilled together have different column types"))?;
        let form = pieces.first().map_or(PhysicalType::Ints, PhysicalType::from_column);
        put_column(&mut bytes, &concat(pieces, form)?)?;
    }
    Ok(bytes)
}

/// Appends a column: its kind, whether it has NULLs, the validity bitmap if so, its values.
pub(super) fn put_column(bytes: &mut Vec<u8>, column: &Column) -> Result<()> {
    let start = bytes.len();
    bytes.extend_from_slice(&[0, u8::from(column.validity.is_some())]);
    if let Some(valid) = &column.validity {
        put_bits(bytes, valid);
    }
    bytes[start] = match &column.data {
        ColumnData::Bools(bits) => {
            put_bits(bytes, bits);
            column_kind::BOOLS
        }
        ColumnData::Ints { values, .. } => {
            put_numbers(bytes, values);
            column_kind::INTS
        }
        ColumnData::WideInts(values) => {
            values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            column_kind::WIDE_INTS
        }
        ColumnData::Floats(values) => {
            values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
            column_kind::FLOATS
        }
        ColumnData::Texts(texts) => {
            let text = |row: usize| if column.is_valid(row) { texts.value(row) } else { "" };
            put_texts(bytes, &(0..column.rows()).map(text).collect::<Vec<_>>());
            column_kind::TEXTS
        }
        ColumnData::Dictionary { indices: codes, dictionary: strings } => {
            let code = |row: usize| column.is_valid(row).then(|| codes[row]);
            put_codes(bytes, column.rows(), code, |code| strings.get(code))
        }
        ColumnData::Opaque(array) => {
            opaque_arrays::put_array(bytes, column, array)?;
            column_kind::OPAQUE
        }
    };
    Ok(())
}

fn put_bits(bytes: &mut Vec<u8>, bits: &Bitmap) {
    bits.words().iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}

fn put_texts(bytes: &mut Vec<u8>, texts: &[&str]) {
    let lengths: Vec<i64> = texts.iter().map(|text| text.len() as i64).collect();
    put_numbers(bytes, &lengths);
    texts.iter().for_each(|text| bytes.extend_from_slice(text.as_bytes()));
}

/// Appends dictionary codes with the entries in use, or the strings of all rows if entries hardly repeat. Returns the
/// kind of column written.
fn put_codes<'a>(
    bytes: &mut Vec<u8>,
    rows: usize,
    code: impl Fn(usize) -> Option<u32>,
    string: impl Fn(u32) -> &'a str,
) -> u8 {
    let mut numbers: HashMap<u32, i64> = HashMap::new();
    let mut texts = Vec::new();
    let number = |row: usize| match code(row) {
        None => 0,
        Some(code) => *numbers.entry(code).or_insert_with(|| {
            texts.push(string(code));
            texts.len() as i64 - 1
        }),
    };
    let codes: Vec<i64> = (0..rows).map(number).collect();
    if rows < texts.len() * ROWS_PER_ENTRY_MIN {
        put_texts(bytes, &(0..rows).map(|row| code(row).map_or("", &string)).collect::<Vec<_>>());
        return column_kind::TEXTS;
    }
    put_count(bytes, texts.len());
    put_texts(bytes, &texts);
    put_numbers(bytes, &codes);
    column_kind::CODES
}
