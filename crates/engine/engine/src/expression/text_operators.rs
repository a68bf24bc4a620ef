//! Comparison and concatenation of string columns.

use std::sync::Arc;

use arrow::array::StringViewBuilder;
use blocks::Comparison;
use types::ValueMemoryCounter;
use types::value_memory::{VALUE_BYTES_MAX, too_long_error};

use super::columnar_value::{ColumnarValue, validity_of_both};
use crate::{Bitmap, Column, ColumnData, Error, Result};

/// Strings of a column by row.
enum TextRows<'a> {
    /// Dictionary-encoded strings: indices and dictionary.
    Dictionary(&'a [u32], &'a crate::Dictionary),
    /// Plain strings.
    Rows(&'a arrow::array::StringViewArray),
    /// Column of NULLs only, with an empty dictionary.
    Nulls,
}

impl<'a> TextRows<'a> {
    fn try_new(column: &'a Column) -> Result<Self> {
        match &column.data {
            ColumnData::Dictionary { dictionary: strings, .. } if strings.is_empty() => Ok(Self::Nulls),
            ColumnData::Dictionary { indices: codes, dictionary: strings } => Ok(Self::Dictionary(codes, strings)),
            ColumnData::Texts(texts) => Ok(Self::Rows(texts)),
            _ => Err(Error::Internal("an operand of a string operator is not a string")),
        }
    }

    #[inline]
    fn get(&self, row: usize) -> &'a str {
        match self {
            Self::Dictionary(codes, strings) => strings.get(codes[row]),
            Self::Rows(texts) => texts.value(row),
            Self::Nulls => "",
        }
    }
}

/// Compares strings by their bytes, row by row.
pub(super) fn compare(
    comparison: Comparison,
    left: &ColumnarValue,
    right: &ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = validity_of_both(left, right, rows);
    let (x, y) = (TextRows::try_new(&left.column)?, TextRows::try_new(&right.column)?);
    let place = |side: &ColumnarValue, row: usize| if side.is_scalar { 0 } else { row };
    let holds = |row: usize| {
        let (x, y) = (x.get(place(left, row)), y.get(place(right, row)));
        match comparison {
            // Most unequal strings differ in length, so equality is cheaper than order.
            Comparison::Equal => x == y,
            Comparison::NotEqual => x != y,
            comparison => comparison.holds(x.cmp(y)),
        }
    };
    let data = ColumnData::Bools(Arc::new(Bitmap::from_fn(rows, holds)));
    Ok(ColumnarValue { column: Column { data, validity }, is_scalar })
}

/// Concatenates the strings of each row; the result is NULL if any of them is. Returns an error with SQLSTATE 54000
/// if a string reaches 1 GB.
pub(super) fn concat(parts: &[ColumnarValue], rows: usize) -> Result<ColumnarValue> {
    let is_scalar = parts.iter().all(|part| part.is_scalar);
    let rows = if is_scalar { 1 } else { rows };
    let valid = parts.iter().filter_map(|part| part.validity(rows));
    let validity = valid.reduce(|all, valid| Arc::new(all.and(&valid)));
    let texts = parts.iter().map(|part| Ok((TextRows::try_new(&part.column)?, part.is_scalar)));
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let (mut builder, mut text) = (StringViewBuilder::with_capacity(rows), String::new());
    let mut guard = ValueMemoryCounter::default();
    for row in 0..rows {
        text.clear();
        if validity.as_ref().is_none_or(|bits| bits.get(row)) {
            for (texts, is_scalar) in &texts {
                text.push_str(texts.get(if *is_scalar { 0 } else { row }));
                if VALUE_BYTES_MAX <= text.len() {
                    return Err(too_long_error().into());
                }
            }
            guard.add(text.len())?;
        }
        builder.append_value(&text);
    }
    Ok(ColumnarValue { column: Column { data: ColumnData::Texts(builder.finish()), validity }, is_scalar })
}
