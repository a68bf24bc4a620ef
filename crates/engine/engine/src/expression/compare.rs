//! Comparisons of numbers.

use std::cmp::Ordering;
use std::sync::Arc;

use blocks::Comparison;

use super::arithmetic::{Side, widened};
use super::computed::{Computed, both_valid};
use crate::{Bits, Bounds, Column, Data, Error, Result};

/// Compares two numeric columns row by row.
pub(super) fn numbers(
    comparison: Comparison,
    left: &Computed,
    right: &Computed,
    factors: (i64, i64),
    rows: usize,
) -> Result<Computed> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = both_valid(left, right, rows);
    let bits = match (&left.column.data, &right.column.data) {
        (Data::Ints { values: x, bounds: a }, Data::Ints { values: y, bounds: b })
            if stays_narrow(*a, factors.0) && stays_narrow(*b, factors.1) =>
        {
            let sides = (Side::of(x, left.is_scalar), Side::of(y, right.is_scalar));
            let (f, g) = factors;
            let (x, y) = (move |x: i64| x.wrapping_mul(f), move |y: i64| y.wrapping_mul(g));
            match comparison {
                Comparison::Less => tested(sides, rows, |a, b| x(a) < y(b)),
                Comparison::LessOrEqual => tested(sides, rows, |a, b| x(a) <= y(b)),
                Comparison::Equal => tested(sides, rows, |a, b| x(a) == y(b)),
                Comparison::NotEqual => tested(sides, rows, |a, b| x(a) != y(b)),
                Comparison::GreaterOrEqual => tested(sides, rows, |a, b| x(a) >= y(b)),
                Comparison::Greater => tested(sides, rows, |a, b| x(a) > y(b)),
            }
        }
        (Data::Floats(x), Data::Floats(y)) => {
            let sides = (Side::of(x, left.is_scalar), Side::of(y, right.is_scalar));
            tested(sides, rows, |x, y| comparison.holds(float_order(x, y)))
        }
        (x, y) => {
            let (x, y) = (widened(x)?, widened(y)?);
            let (f, g) = (i128::from(factors.0), i128::from(factors.1));
            let mut is_odd = false;
            let sides = (Side::of(x.as_slice(), left.is_scalar), Side::of(y.as_slice(), right.is_scalar));
            let bits = tested(sides, rows, |x, y| match x.checked_mul(f).zip(y.checked_mul(g)) {
                Some((x, y)) => comparison.holds(x.cmp(&y)),
                None => {
                    is_odd = true;
                    false
                }
            });
            if is_odd {
                return Err(Error::Value("a scaled operand exceeds 128 bits"));
            }
            bits
        }
    };
    let column = Column { data: Data::Bools(Arc::new(bits)), validity };
    Ok(Computed { column, is_scalar })
}

/// Orders floats as PostgreSQL does: -0 equals 0, NaN equals NaN and is greater than all other values.
pub(crate) fn float_order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

/// Returns whether values within bounds still fit in 64 bits after scaling.
fn stays_narrow(bounds: Bounds, factor: i64) -> bool {
    let factor = i128::from(factor);
    let ends = bounds.min.checked_mul(factor).zip(bounds.max.checked_mul(factor));
    ends.is_some_and(|(min, max)| Bounds { min, max }.are_narrow())
}

/// Tests each exact number for membership in a list.
pub(super) fn among(value: &Computed, list: &[i64], is_negated: bool, rows: usize) -> Result<Computed> {
    let rows = if value.is_scalar { 1 } else { rows };
    let bits = match &value.column.data {
        Data::Ints { values, .. } if list.len() <= 8 => Bits::of(rows, |row| list.contains(&values[row]) != is_negated),
        Data::Ints { values, .. } => Bits::of(rows, |row| list.binary_search(&values[row]).is_ok() != is_negated),
        Data::Wide(values) => Bits::of(rows, |row| {
            i64::try_from(values[row]).is_ok_and(|value| list.binary_search(&value).is_ok()) != is_negated
        }),
        _ => return Err(Error::Form("the operand of IN is not an exact number")),
    };
    let column = Column { data: Data::Bools(Arc::new(bits)), validity: value.column.validity.clone() };
    Ok(Computed { column, is_scalar: value.is_scalar })
}

/// Tests each `float8` for membership in a list.
pub(super) fn among_floats(value: &Computed, list: &[f64], is_negated: bool, rows: usize) -> Result<Computed> {
    let Data::Floats(values) = &value.column.data else { return Err(Error::Form("the operand of IN is not a float8")) };
    let rows = if value.is_scalar { 1 } else { rows };
    let is_in = |value: f64| list.iter().any(|known| float_order(*known, value).is_eq());
    let bits = Bits::of(rows, |row| is_in(values[row]) != is_negated);
    let column = Column { data: Data::Bools(Arc::new(bits)), validity: value.column.validity.clone() };
    Ok(Computed { column, is_scalar: value.is_scalar })
}

/// Tests each pair of operands.
fn tested<T: Copy>(sides: (Side<'_, T>, Side<'_, T>), rows: usize, mut test: impl FnMut(T, T) -> bool) -> Bits {
    match sides {
        (Side::Rows(x), Side::Rows(y)) => Bits::of_pairs(&x[..rows], &y[..rows], test),
        (Side::Rows(x), Side::Scalar(y)) => Bits::of_values(&x[..rows], |x| test(x, y)),
        (Side::Scalar(x), Side::Rows(y)) => Bits::of_values(&y[..rows], |y| test(x, y)),
        (Side::Scalar(x), Side::Scalar(y)) => Bits::all(rows, test(x, y)),
    }
}
