//! Comparison and concatenation of string columns.

use std::sync::Arc;

use arrow::array::StringViewBuilder;
use blocks::Comparison;
use types::ValueGuard;
use types::value_guard::{VALUE_BYTES_MAX, too_long};

use super::computed::{Computed, both_valid};
use crate::{Bits, Column, Data, Error, Result};

/// Strings of a column by row.
enum Texts<'a> {
    /// Dictionary-encoded strings: indices and dictionary.
    Codes(&'a [u32], &'a crate::Strings),
    /// Plain strings.
    Rows(&'a arrow::array::StringViewArray),
    /// Column of NULLs only, with an empty dictionary.
    None,
}

impl<'a> Texts<'a> {
    fn of(column: &'a Column) -> Result<Self> {
        match &column.data {
            Data::Codes { strings, .. } if strings.is_empty() => Ok(Self::None),
            Data::Codes { codes, strings } => Ok(Self::Codes(codes, strings)),
            Data::Texts(texts) => Ok(Self::Rows(texts)),
            _ => Err(Error::Form("an operand is not a string")),
        }
    }

    #[inline]
    fn get(&self, row: usize) -> &'a str {
        match self {
            Self::Codes(codes, strings) => strings.get(codes[row]),
            Self::Rows(texts) => texts.value(row),
            Self::None => "",
        }
    }
}

/// Compares strings by their bytes, row by row.
pub(super) fn compare(comparison: Comparison, left: &Computed, right: &Computed, rows: usize) -> Result<Computed> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = both_valid(left, right, rows);
    let (x, y) = (Texts::of(&left.column)?, Texts::of(&right.column)?);
    let place = |side: &Computed, row: usize| if side.is_scalar { 0 } else { row };
    let holds = |row: usize| {
        let (x, y) = (x.get(place(left, row)), y.get(place(right, row)));
        match comparison {
            // Most unequal strings differ in length, so equality is cheaper than order.
            Comparison::Equal => x == y,
            Comparison::NotEqual => x != y,
            comparison => comparison.holds(x.cmp(y)),
        }
    };
    let data = Data::Bools(Arc::new(Bits::of(rows, holds)));
    Ok(Computed { column: Column { data, validity }, is_scalar })
}

/// Concatenates the strings of each row; the result is NULL if any of them is. Returns an error with SQLSTATE 54000
/// if a string reaches 1 GB.
pub(super) fn joined(parts: &[Computed], rows: usize) -> Result<Computed> {
    let is_scalar = parts.iter().all(|part| part.is_scalar);
    let rows = if is_scalar { 1 } else { rows };
    let valid = parts.iter().filter_map(|part| part.validity(rows));
    let validity = valid.reduce(|all, valid| Arc::new(all.and(&valid)));
    let texts = parts.iter().map(|part| Ok((Texts::of(&part.column)?, part.is_scalar)));
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let (mut builder, mut text) = (StringViewBuilder::with_capacity(rows), String::new());
    let mut guard = ValueGuard::default();
    for row in 0..rows {
        text.clear();
        if validity.as_ref().is_none_or(|bits| bits.get(row)) {
            for (texts, is_scalar) in &texts {
                text.push_str(texts.get(if *is_scalar { 0 } else { row }));
                if VALUE_BYTES_MAX <= text.len() {
                    return Err(too_long().into());
                }
            }
            guard.add(text.len())?;
        }
        builder.append_value(&text);
    }
    Ok(Computed { column: Column { data: Data::Texts(builder.finish()), validity }, is_scalar })
}
