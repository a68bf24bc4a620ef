//! Comparison of rows and values in PostgreSQL's order.

use std::cmp::Ordering;

use arrow::array::Array;

use super::SortKey;
use crate::expression::float_order;
use crate::{Column, ColumnData, Error, Result};

/// Compares two rows of one batch, or of two batches whose columns have the same forms.
pub(super) fn compare_rows(
    keys: &[SortKey],
    left: &[Column],
    left_row: usize,
    right: &[Column],
    right_row: usize,
) -> Result<Ordering> {
    for key in keys {
        let order = key.compare(&left[key.column], left_row, &right[key.column], right_row)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(Ordering::Equal)
}

impl SortKey {
    /// Compares two values in the order of this key, NULLs included.
    #[inline]
    pub(super) fn compare(&self, left: &Column, x: usize, right: &Column, y: usize) -> Result<Ordering> {
        match (left.is_valid(x), right.is_valid(y)) {
            (true, true) => {
                let order = compare_values(left, x, right, y)?;
                Ok(if self.is_descending { order.reverse() } else { order })
            }
            (false, false) => Ok(Ordering::Equal),
            (is_valid, _) => Ok(if is_valid == self.nulls_first { Ordering::Greater } else { Ordering::Less }),
        }
    }
}

/// Compares two values that are not NULL: strings by their bytes, floats as PostgreSQL does.
#[inline]
pub(crate) fn compare_values(left: &Column, x: usize, right: &Column, y: usize) -> Result<Ordering> {
    Ok(match (&left.data, &right.data) {
        (ColumnData::Ints { values: left, .. }, ColumnData::Ints { values: right, .. }) => left[x].cmp(&right[y]),
        (ColumnData::WideInts(left), ColumnData::WideInts(right)) => left[x].cmp(&right[y]),
        (ColumnData::WideInts(left), ColumnData::Ints { values: right, .. }) => left[x].cmp(&right[y].into()),
        (ColumnData::Ints { values: left, .. }, ColumnData::WideInts(right)) => i128::from(left[x]).cmp(&right[y]),
        (ColumnData::Floats(left), ColumnData::Floats(right)) => float_order(left[x], right[y]),
        (ColumnData::Bools(left), ColumnData::Bools(right)) => left.get(x).cmp(&right.get(y)),
        (left, right) => text(left, x)?.cmp(text(right, y)?),
    })
}

/// Returns whether two values are not distinct; NULLs are not distinct from each other.
#[inline]
pub(crate) fn is_not_distinct(column: &Column, x: usize, y: usize) -> Result<bool> {
    Ok(match (column.is_valid(x), column.is_valid(y)) {
        (true, true) => compare_values(column, x, column, y)?.is_eq(),
        (x, y) => x == y,
    })
}

fn text(data: &ColumnData, row: usize) -> Result<&[u8]> {
    match data {
        ColumnData::Texts(texts) => Ok(texts.value(row).as_bytes()),
        ColumnData::Dictionary { indices: codes, dictionary: strings }
            if (codes[row] as usize) < strings.values().len() =>
        {
            Ok(strings.get(codes[row]).as_bytes())
        }
        _ => Err(Error::Internal("two sort key values to be compared have different physical types")),
    }
}
