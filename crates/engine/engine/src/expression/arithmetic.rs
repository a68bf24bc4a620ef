//! Addition, subtraction and multiplication.

use std::sync::Arc;

use blocks::kernels::Kernels;

use super::columnar_value::{ColumnarValue, validity_of_both};
use crate::{Bitmap, Bounds, Column, ColumnData, Error, Result};

/// Arithmetic operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArithmeticOperation {
    Add,
    Subtract,
    Multiply,
}

impl ArithmeticOperation {
    /// Returns the bounds of the results for operands within bounds, or `None` beyond 128 bits.
    fn result_bounds(self, left: Bounds, right: Bounds) -> Option<Bounds> {
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
    fn checked_apply(self, left: i128, right: i128) -> Option<i128> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
        }
    }
}

/// Computes the operation on exact numbers, in 64 bits if the bounds exclude overflow, otherwise checked in 128 bits.
pub(super) fn compute_exact(
    operation: ArithmeticOperation,
    left: &ColumnarValue,
    right: &ColumnarValue,
    factors: (i64, i64),
    limits: Bounds,
    rows: usize,
) -> Result<ColumnarValue> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = validity_of_both(left, right, rows);
    if let (ColumnData::Ints { values: x, bounds: a }, ColumnData::Ints { values: y, bounds: b }) =
        (&left.column.data, &right.column.data)
        && let (Some(a), Some(b)) = (scale_bounds(*a, factors.0), scale_bounds(*b, factors.1))
        && let Some(bounds) = operation.result_bounds(a, b)
        && [a, b, bounds].into_iter().all(Bounds::fit_i64)
        && limits.min <= bounds.min
        && bounds.max <= limits.max
    {
        // The bounds exclude overflow, so no row is checked.
        let sides = (Operand::new(x, left.is_scalar), Operand::new(y, right.is_scalar));
        let values = compute_unchecked(operation, sides, factors, rows);
        let data = ColumnData::Ints { values: Arc::new(values), bounds };
        return Ok(ColumnarValue { column: Column { data, validity }, is_scalar });
    }
    let (x, y) = (to_wide(&left.column.data)?, to_wide(&right.column.data)?);
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let x = x[if left.is_scalar { 0 } else { row }].checked_mul(factors.0.into());
        let y = y[if right.is_scalar { 0 } else { row }].checked_mul(factors.1.into());
        let value = x.zip(y).and_then(|(x, y)| operation.checked_apply(x, y));
        match value.filter(|value| limits.min <= *value && *value <= limits.max) {
            Some(value) => values.push(value),
            None if validity.as_ref().is_some_and(|bits: &Arc<Bitmap>| !bits.get(row)) => values.push(0),
            None => return Err(Error::UncomputableValue("a result is out of its type's range")),
        }
    }
    Ok(ColumnarValue { column: Column { data: narrow_if_possible(values), validity }, is_scalar })
}

/// Computes the operation with kernels that do not check for overflow.
fn compute_unchecked(
    operation: ArithmeticOperation,
    sides: (Operand<'_, i64>, Operand<'_, i64>),
    factors: (i64, i64),
    rows: usize,
) -> Vec<i64> {
    let kernels = Kernels::get();
    let (f, g) = (factors.0, if operation == ArithmeticOperation::Subtract { -factors.1 } else { factors.1 });
    let mut out = vec![0; rows];
    match (operation, sides) {
        (ArithmeticOperation::Multiply, (Operand::Rows(x), Operand::Rows(y))) => kernels.product(x, y, &mut out),
        (
            ArithmeticOperation::Multiply,
            (Operand::Rows(x), Operand::Scalar(y)) | (Operand::Scalar(y), Operand::Rows(x)),
        ) => {
            kernels.scale_and_shift(x, y, 0, &mut out);
        }
        (ArithmeticOperation::Multiply, (Operand::Scalar(x), Operand::Scalar(y))) => out.fill(x.wrapping_mul(y)),
        (_, (Operand::Rows(x), Operand::Rows(y))) => kernels.linear_combination(x, f, y, g, &mut out),
        (_, (Operand::Rows(x), Operand::Scalar(y))) => kernels.scale_and_shift(x, f, y.wrapping_mul(g), &mut out),
        (_, (Operand::Scalar(x), Operand::Rows(y))) => kernels.scale_and_shift(y, g, x.wrapping_mul(f), &mut out),
        (_, (Operand::Scalar(x), Operand::Scalar(y))) => out.fill(x.wrapping_mul(f).wrapping_add(y.wrapping_mul(g))),
    }
    out
}

/// Converts values to 64 bits if all of them fit, so that later operations are fast again.
pub(super) fn narrow_if_possible(values: Vec<i128>) -> ColumnData {
    let narrow: Option<Vec<i64>> = values.iter().map(|value| i64::try_from(*value).ok()).collect();
    match narrow {
        Some(values) => {
            let bounds = Bounds {
                min: values.iter().min().copied().unwrap_or(0).into(),
                max: values.iter().max().copied().unwrap_or(0).into(),
            };
            ColumnData::Ints { values: Arc::new(values), bounds }
        }
        None => ColumnData::WideInts(Arc::new(values)),
    }
}

/// Multiplies bounds by a factor; returns `None` beyond 128 bits.
fn scale_bounds(bounds: Bounds, factor: i64) -> Option<Bounds> {
    // Factors are positive powers of ten.
    Some(Bounds { min: bounds.min.checked_mul(factor.into())?, max: bounds.max.checked_mul(factor.into())? })
}

/// Returns exact numbers as 128-bit integers.
pub(super) fn to_wide(data: &ColumnData) -> Result<Arc<Vec<i128>>> {
    match data {
        ColumnData::Ints { values, .. } => Ok(Arc::new(values.iter().map(|value| i128::from(*value)).collect())),
        ColumnData::WideInts(values) => Ok(Arc::clone(values)),
        _ => Err(Error::Internal("an operand of integer or numeric arithmetic has another type")),
    }
}

/// Computes the operation on `float8`. A result that is infinite although no operand is, or zero by underflow, is an
/// error.
pub(super) fn compute_floats(
    operation: ArithmeticOperation,
    left: &ColumnarValue,
    right: &ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let (ColumnData::Floats(x), ColumnData::Floats(y)) = (&left.column.data, &right.column.data) else {
        return Err(Error::Internal("an operand of float arithmetic is not a float8"));
    };
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = validity_of_both(left, right, rows);
    let sides = (Operand::new(x, left.is_scalar), Operand::new(y, right.is_scalar));
    let values = match operation {
        ArithmeticOperation::Add => zip_map(sides, rows, |x, y| x + y),
        ArithmeticOperation::Subtract => zip_map(sides, rows, |x, y| x - y),
        ArithmeticOperation::Multiply => zip_map(sides, rows, |x, y| x * y),
    };
    // The fallback reports overflow and underflow as PostgreSQL does.
    let is_odd = |value: &f64| value.is_infinite() || (operation == ArithmeticOperation::Multiply && *value == 0.0);
    if values.iter().any(is_odd) {
        let is_beyond = |row: usize| {
            let (x, y, value) = (sides.0.get(row), sides.1.get(row), values[row]);
            let is_valid = validity.as_ref().is_none_or(|bits| bits.get(row));
            let has_vanished = operation == ArithmeticOperation::Multiply && value == 0.0 && x != 0.0 && y != 0.0;
            is_valid && (has_vanished || (value.is_infinite() && x.is_finite() && y.is_finite()))
        };
        if (0..rows).any(is_beyond) {
            return Err(Error::UncomputableValue("a result overflows or underflows float8"));
        }
    }
    let column = Column { data: ColumnData::Floats(Arc::new(values)), validity };
    Ok(ColumnarValue { column, is_scalar })
}

/// Operand of a binary operation: one value per row, or one value for all rows.
#[derive(Clone, Copy)]
pub(super) enum Operand<'a, T> {
    Rows(&'a [T]),
    Scalar(T),
}

impl<'a, T: Copy> Operand<'a, T> {
    pub(super) fn new(values: &'a [T], is_scalar: bool) -> Self {
        if is_scalar { Self::Scalar(values[0]) } else { Self::Rows(values) }
    }

    pub(super) fn get(self, row: usize) -> T {
        match self {
            Self::Rows(values) => values[row],
            Self::Scalar(value) => value,
        }
    }
}

/// Applies `of` to each pair of operands, in loops that the compiler vectorizes.
pub(super) fn zip_map<T: Copy, U>(
    sides: (Operand<'_, T>, Operand<'_, T>),
    rows: usize,
    of: impl Fn(T, T) -> U,
) -> Vec<U> {
    match sides {
        (Operand::Rows(x), Operand::Rows(y)) => x[..rows].iter().zip(&y[..rows]).map(|(x, y)| of(*x, *y)).collect(),
        (Operand::Rows(x), Operand::Scalar(y)) => x[..rows].iter().map(|x| of(*x, y)).collect(),
        (Operand::Scalar(x), Operand::Rows(y)) => y[..rows].iter().map(|y| of(x, *y)).collect(),
        (Operand::Scalar(x), Operand::Scalar(y)) => (0..rows).map(|_| of(x, y)).collect(),
    }
}
