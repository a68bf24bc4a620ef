//! Comparisons of numbers.

use std::cmp::Ordering;
use std::sync::Arc;

use blocks::Comparison;

use super::arithmetic::{Operand, to_wide};
use super::columnar_value::{ColumnarValue, validity_of_both};
use crate::{Bitmap, Bounds, Column, ColumnData, Error, Result};

/// Compares two numeric columns row by row.
pub(super) fn compare_numbers(
    comparison: Comparison,
    left: &ColumnarValue,
    right: &ColumnarValue,
    factors: (i64, i64),
    rows: usize,
) -> Result<ColumnarValue> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = validity_of_both(left, right, rows);
    let bits = match (&left.column.data, &right.column.data) {
        (ColumnData::Ints { values: x, bounds: a }, ColumnData::Ints { values: y, bounds: b })
            if fits_i64_scaled(*a, factors.0) && fits_i64_scaled(*b, factors.1) =>
        {
            let sides = (Operand::new(x, left.is_scalar), Operand::new(y, right.is_scalar));
            let (f, g) = factors;
            let (x, y) = (move |x: i64| x.wrapping_mul(f), move |y: i64| y.wrapping_mul(g));
            match comparison {
                Comparison::Less => test_pairs(sides, rows, |a, b| x(a) < y(b)),
                Comparison::LessOrEqual => test_pairs(sides, rows, |a, b| x(a) <= y(b)),
                Comparison::Equal => test_pairs(sides, rows, |a, b| x(a) == y(b)),
                Comparison::NotEqual => test_pairs(sides, rows, |a, b| x(a) != y(b)),
                Comparison::GreaterOrEqual => test_pairs(sides, rows, |a, b| x(a) >= y(b)),
                Comparison::Greater => test_pairs(sides, rows, |a, b| x(a) > y(b)),
            }
        }
        (ColumnData::Floats(x), ColumnData::Floats(y)) => {
            let sides = (Operand::new(x, left.is_scalar), Operand::new(y, right.is_scalar));
            test_pairs(sides, rows, |x, y| comparison.holds(float_order(x, y)))
        }
        (x, y) => {
            let (x, y) = (to_wide(x)?, to_wide(y)?);
            let (f, g) = (i128::from(factors.0), i128::from(factors.1));
            let mut is_odd = false;
            let sides = (Operand::new(x.as_slice(), left.is_scalar), Operand::new(y.as_slice(), right.is_scalar));
            let bits = test_pairs(sides, rows, |x, y| match x.checked_mul(f).zip(y.checked_mul(g)) {
                Some((x, y)) => comparison.holds(x.cmp(&y)),
                None => {
                    is_odd = true;
                    false
                }
            });
            if is_odd {
                return Err(Error::UncomputableValue("a scaled operand exceeds 128 bits"));
            }
            bits
        }
    };
    let column = Column { data: ColumnData::Bools(Arc::new(bits)), validity };
    Ok(ColumnarValue { column, is_scalar })
}

/// Orders floats as PostgreSQL does: -0 equals 0, NaN equals NaN and is greater than all other values.
pub(crate) fn float_order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

/// Returns whether values within bounds still fit in 64 bits after scaling.
fn fits_i64_scaled(bounds: Bounds, factor: i64) -> bool {
    let factor = i128::from(factor);
    let ends = bounds.min.checked_mul(factor).zip(bounds.max.checked_mul(factor));
    ends.is_some_and(|(min, max)| Bounds { min, max }.fit_i64())
}

/// Tests each exact number for membership in a list.
pub(super) fn in_list(value: &ColumnarValue, list: &[i64], is_negated: bool, rows: usize) -> Result<ColumnarValue> {
    let rows = if value.is_scalar { 1 } else { rows };
    let bits = match &value.column.data {
        ColumnData::Ints { values, .. } if list.len() <= 8 => {
            Bitmap::from_fn(rows, |row| list.contains(&values[row]) != is_negated)
        }
        ColumnData::Ints { values, .. } => {
            Bitmap::from_fn(rows, |row| list.binary_search(&values[row]).is_ok() != is_negated)
        }
        ColumnData::WideInts(values) => Bitmap::from_fn(rows, |row| {
            i64::try_from(values[row]).is_ok_and(|value| list.binary_search(&value).is_ok()) != is_negated
        }),
        _ => return Err(Error::Internal("the operand of IN is not an exact number")),
    };
    let column = Column { data: ColumnData::Bools(Arc::new(bits)), validity: value.column.validity.clone() };
    Ok(ColumnarValue { column, is_scalar: value.is_scalar })
}

/// Tests each `float8` for membership in a list.
pub(super) fn float_in_list(
    value: &ColumnarValue,
    list: &[f64],
    is_negated: bool,
    rows: usize,
) -> Result<ColumnarValue> {
    let ColumnData::Floats(values) = &value.column.data else {
        return Err(Error::Internal("the operand of IN is not a float8"));
    };
    let rows = if value.is_scalar { 1 } else { rows };
    let is_in = |value: f64| list.iter().any(|known| float_order(*known, value).is_eq());
    let bits = Bitmap::from_fn(rows, |row| is_in(values[row]) != is_negated);
    let column = Column { data: ColumnData::Bools(Arc::new(bits)), validity: value.column.validity.clone() };
    Ok(ColumnarValue { column, is_scalar: value.is_scalar })
}

/// Tests each pair of operands.
fn test_pairs<T: Copy>(
    sides: (Operand<'_, T>, Operand<'_, T>),
    rows: usize,
    mut test: impl FnMut(T, T) -> bool,
) -> Bitmap {
    match sides {
        (Operand::Rows(x), Operand::Rows(y)) => Bitmap::from_pairs(&x[..rows], &y[..rows], test),
        (Operand::Rows(x), Operand::Scalar(y)) => Bitmap::from_values(&x[..rows], |x| test(x, y)),
        (Operand::Scalar(x), Operand::Rows(y)) => Bitmap::from_values(&y[..rows], |y| test(x, y)),
        (Operand::Scalar(x), Operand::Scalar(y)) => Bitmap::filled(rows, test(x, y)),
    }
}
