//! Addition, subtraction and multiplication.

use std::sync::Arc;

use blocks::kernels::Kernels;

use super::computed::{Computed, both_valid};
use crate::{Bits, Bounds, Column, Data, Error, Result};

/// Arithmetic operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Add,
    Subtract,
    Multiply,
}

impl Operation {
    /// Returns the bounds of the results for operands within bounds, or `None` beyond 128 bits.
    fn bounds(self, left: Bounds, right: Bounds) -> Option<Bounds> {
        let corners = match self {
            Self::Add => [left.min.checked_add(right.min)?, left.max.checked_add(right.max)?].to_vec(),
            Self::Subtract => [left.min.checked_sub(right.max)?, left.max.checked_sub(right.min)?].to_vec(),
            Self::Multiply => {
                [(left.min, right.min), (left.min, right.max), (left.max, right.min), (left.max, right.max)]
                    .into_iter()
                    .map(|(left, right)| left.checked_mul(right))
                    .collect::<Option<Vec<_>>>()?
            }
        };
        Some(Bounds { min: *corners.iter().min()?, max: *corners.iter().max()? })
    }

    /// Computes the operation on 128-bit integers, or returns `None` on overflow.
    fn wide(self, left: i128, right: i128) -> Option<i128> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
        }
    }
}

/// Computes the operation on exact numbers, in 64 bits if the bounds exclude overflow, otherwise checked in 128 bits.
pub(super) fn integers(
    operation: Operation,
    left: &Computed,
    right: &Computed,
    factors: (i64, i64),
    limits: Bounds,
    rows: usize,
) -> Result<Computed> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = both_valid(left, right, rows);
    if let (Data::Ints { values: x, bounds: a }, Data::Ints { values: y, bounds: b }) =
        (&left.column.data, &right.column.data)
        && let (Some(a), Some(b)) = (scaled(*a, factors.0), scaled(*b, factors.1))
        && let Some(bounds) = operation.bounds(a, b)
        && [a, b, bounds].into_iter().all(Bounds::are_narrow)
        && limits.min <= bounds.min
        && bounds.max <= limits.max
    {
        // The bounds exclude overflow, so no row is checked.
        let sides = (Side::of(x, left.is_scalar), Side::of(y, right.is_scalar));
        let values = unchecked(operation, sides, factors, rows);
        let data = Data::Ints { values: Arc::new(values), bounds };
        return Ok(Computed { column: Column { data, validity }, is_scalar });
    }
    let (x, y) = (widened(&left.column.data)?, widened(&right.column.data)?);
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let x = x[if left.is_scalar { 0 } else { row }].checked_mul(factors.0.into());
        let y = y[if right.is_scalar { 0 } else { row }].checked_mul(factors.1.into());
        let value = x.zip(y).and_then(|(x, y)| operation.wide(x, y));
        match value.filter(|value| limits.min <= *value && *value <= limits.max) {
            Some(value) => values.push(value),
            None if validity.as_ref().is_some_and(|bits: &Arc<Bits>| !bits.get(row)) => values.push(0),
            None => return Err(Error::Value("a result is out of its type's range")),
        }
    }
    Ok(Computed { column: Column { data: narrowed(values), validity }, is_scalar })
}

/// Computes the operation with kernels that do not check for overflow.
fn unchecked(
    operation: Operation,
    sides: (Side<'_, i64>, Side<'_, i64>),
    factors: (i64, i64),
    rows: usize,
) -> Vec<i64> {
    let kernels = Kernels::get();
    let (f, g) = (factors.0, if operation == Operation::Subtract { -factors.1 } else { factors.1 });
    let mut out = vec![0; rows];
    match (operation, sides) {
        (Operation::Multiply, (Side::Rows(x), Side::Rows(y))) => kernels.product(x, y, &mut out),
        (Operation::Multiply, (Side::Rows(x), Side::Scalar(y)) | (Side::Scalar(y), Side::Rows(x))) => {
            kernels.shift(x, y, 0, &mut out);
        }
        (Operation::Multiply, (Side::Scalar(x), Side::Scalar(y))) => out.fill(x.wrapping_mul(y)),
        (_, (Side::Rows(x), Side::Rows(y))) => kernels.linear(x, f, y, g, &mut out),
        (_, (Side::Rows(x), Side::Scalar(y))) => kernels.shift(x, f, y.wrapping_mul(g), &mut out),
        (_, (Side::Scalar(x), Side::Rows(y))) => kernels.shift(y, g, x.wrapping_mul(f), &mut out),
        (_, (Side::Scalar(x), Side::Scalar(y))) => out.fill(x.wrapping_mul(f).wrapping_add(y.wrapping_mul(g))),
    }
    out
}

/// Converts values to 64 bits if all of them fit, so that later operations are fast again.
pub(super) fn narrowed(values: Vec<i128>) -> Data {
    let narrow: Option<Vec<i64>> = values.iter().map(|value| i64::try_from(*value).ok()).collect();
    match narrow {
        Some(values) => {
            let bounds = Bounds {
                min: values.iter().min().copied().unwrap_or(0).into(),
                max: values.iter().max().copied().unwrap_or(0).into(),
            };
            Data::Ints { values: Arc::new(values), bounds }
        }
        None => Data::Wide(Arc::new(values)),
    }
}

/// Multiplies bounds by a factor; returns `None` beyond 128 bits.
fn scaled(bounds: Bounds, factor: i64) -> Option<Bounds> {
    // Factors are positive powers of ten.
    Some(Bounds { min: bounds.min.checked_mul(factor.into())?, max: bounds.max.checked_mul(factor.into())? })
}

/// Returns exact numbers as 128-bit integers.
pub(super) fn widened(data: &Data) -> Result<Arc<Vec<i128>>> {
    match data {
        Data::Ints { values, .. } => Ok(Arc::new(values.iter().map(|value| i128::from(*value)).collect())),
        Data::Wide(values) => Ok(Arc::clone(values)),
        _ => Err(Error::Form("an operand is not an exact number")),
    }
}

/// Computes the operation on `float8`. A result that is infinite although no operand is, or zero by underflow, is an
/// error.
pub(super) fn floats(operation: Operation, left: &Computed, right: &Computed, rows: usize) -> Result<Computed> {
    let (Data::Floats(x), Data::Floats(y)) = (&left.column.data, &right.column.data) else {
        return Err(Error::Form("an operand of float arithmetic is not a float8"));
    };
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = both_valid(left, right, rows);
    let sides = (Side::of(x, left.is_scalar), Side::of(y, right.is_scalar));
    let values = match operation {
        Operation::Add => zipped(sides, rows, |x, y| x + y),
        Operation::Subtract => zipped(sides, rows, |x, y| x - y),
        Operation::Multiply => zipped(sides, rows, |x, y| x * y),
    };
    // The fallback reports overflow and underflow as PostgreSQL does.
    let is_odd = |value: &f64| value.is_infinite() || (operation == Operation::Multiply && *value == 0.0);
    if values.iter().any(is_odd) {
        let is_beyond = |row: usize| {
            let (x, y, value) = (sides.0.at(row), sides.1.at(row), values[row]);
            let is_valid = validity.as_ref().is_none_or(|bits| bits.get(row));
            let has_vanished = operation == Operation::Multiply && value == 0.0 && x != 0.0 && y != 0.0;
            is_valid && (has_vanished || (value.is_infinite() && x.is_finite() && y.is_finite()))
        };
        if (0..rows).any(is_beyond) {
            return Err(Error::Value("a result overflows or underflows float8"));
        }
    }
    let column = Column { data: Data::Floats(Arc::new(values)), validity };
    Ok(Computed { column, is_scalar })
}

/// Operand of a binary operation: one value per row, or one value for all rows.
#[derive(Clone, Copy)]
pub(super) enum Side<'a, T> {
    Rows(&'a [T]),
    Scalar(T),
}

impl<'a, T: Copy> Side<'a, T> {
    pub(super) fn of(values: &'a [T], is_scalar: bool) -> Self {
        if is_scalar { Self::Scalar(values[0]) } else { Self::Rows(values) }
    }

    pub(super) fn at(self, row: usize) -> T {
        match self {
            Self::Rows(values) => values[row],
            Self::Scalar(value) => value,
        }
    }
}

/// Applies `of` to each pair of operands, in loops that the compiler vectorizes.
pub(super) fn zipped<T: Copy, U>(sides: (Side<'_, T>, Side<'_, T>), rows: usize, of: impl Fn(T, T) -> U) -> Vec<U> {
    match sides {
        (Side::Rows(x), Side::Rows(y)) => x[..rows].iter().zip(&y[..rows]).map(|(x, y)| of(*x, *y)).collect(),
        (Side::Rows(x), Side::Scalar(y)) => x[..rows].iter().map(|x| of(*x, y)).collect(),
        (Side::Scalar(x), Side::Rows(y)) => y[..rows].iter().map(|y| of(x, *y)).collect(),
        (Side::Scalar(x), Side::Scalar(y)) => (0..rows).map(|_| of(x, y)).collect(),
    }
}
