//! Decoding of rows from spill files. Damaged bytes are an error.

use std::sync::Arc;

use arrow::array::{StringViewArray, StringViewBuilder};

use super::integer_encoding::{DAMAGED_ERROR, Reader};
use super::{column_kind, opaque_arrays};
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Dictionary, Result};

/// Size of the memory blocks that strings are copied to, in bytes.
const TEXT_BLOCK_BYTES: u32 = 1 << 20;

/// Decodes rows that [`super::encode`] has encoded.
///
/// # Errors
/// [`crate::Error::Internal`] if the bytes are damaged.
pub fn decode(bytes: &[u8]) -> Result<Batch> {
    let mut reader = Reader(bytes);
    let (rows, count) = (reader.read_count()?, reader.read_count()?);
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(read_column(&mut reader, rows, 0)?);
    }
    if reader.0.is_empty() { Ok(Batch { rows, columns }) } else { Err(DAMAGED_ERROR) }
}

/// Reads a column of `rows` rows; `depth` is the number of enclosing lists.
pub(super) fn read_column(reader: &mut Reader<'_>, rows: usize, depth: u32) -> Result<Column> {
    let (column_kind, has_null) = (reader.read_byte()?, reader.read_byte()?);
    let validity = match has_null {
        0 => None,
        1 => Some(Arc::new(read_bits(reader, rows)?)),
        _ => return Err(DAMAGED_ERROR),
    };
    let data = match column_kind {
        column_kind::BOOLS => ColumnData::Bools(Arc::new(read_bits(reader, rows)?)),
        column_kind::INTS => {
            let values = reader.read_numbers(rows)?;
            let (min, max) = values.iter().fold((i64::MAX, i64::MIN), |(min, max), v| (min.min(*v), max.max(*v)));
            let bounds =
                if values.is_empty() { Bounds::from_value(0) } else { Bounds { min: min.into(), max: max.into() } };
            ColumnData::Ints { values: Arc::new(values), bounds }
        }
        column_kind::WIDE_INTS => {
            ColumnData::WideInts(Arc::new(reader.read_items(rows)?.map(i128::from_le_bytes).collect()))
        }
        column_kind::FLOATS => ColumnData::Floats(Arc::new(reader.read_items(rows)?.map(f64::from_le_bytes).collect())),
        column_kind::TEXTS => ColumnData::Texts(read_texts(reader, rows)?),
        column_kind::CODES => {
            let count = reader.read_count()?;
            let strings = read_texts(reader, count)?;
            let code = |number: i64| {
                let code = u32::try_from(number).ok().filter(|code| (*code as usize) < count.max(1));
                code.ok_or(DAMAGED_ERROR)
            };
            let codes = reader.read_numbers(rows)?.into_iter().map(code).collect::<Result<Vec<u32>>>()?;
            // With an empty dictionary every row must be NULL.
            if count == 0 && validity.as_ref().is_none_or(|valid| valid.count_ones() != 0) && rows != 0 {
                return Err(DAMAGED_ERROR);
            }
            ColumnData::Dictionary { indices: Arc::new(codes), dictionary: Dictionary::new(strings) }
        }
        column_kind::OPAQUE => ColumnData::Opaque(opaque_arrays::read_array(reader, rows, validity.as_deref(), depth)?),
        _ => return Err(DAMAGED_ERROR),
    };
    Ok(Column { data, validity })
}

fn read_bits(reader: &mut Reader<'_>, rows: usize) -> Result<Bitmap> {
    Ok(Bitmap::from_words(reader.read_items(rows.div_ceil(64))?.map(u64::from_le_bytes).collect(), rows))
}

fn read_texts(reader: &mut Reader<'_>, count: usize) -> Result<StringViewArray> {
    let lengths = reader.read_numbers(count)?;
    let mut builder = StringViewBuilder::with_capacity(count).with_fixed_block_size(TEXT_BLOCK_BYTES);
    for length in lengths {
        let bytes = reader.read_bytes(usize::try_from(length).map_err(|_| DAMAGED_ERROR)?)?;
        builder.try_append_value(std::str::from_utf8(bytes).map_err(|_| DAMAGED_ERROR)?)?;
    }
    Ok(builder.finish())
}
