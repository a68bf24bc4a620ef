//! Division and remainder.

use std::sync::Arc;

use types::numeric::divide_rounding;

use super::arithmetic::{Operand, narrow_if_possible, to_wide, zip_map};
use super::columnar_value::{ColumnarValue, validity_of_both};
use crate::{Bitmap, Bounds, Column, ColumnData, Error, Result};

/// Kind of division.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Division {
    /// The dividend's digits are multiplied by `factor`, and the quotient is rounded half away from zero.
    Rounded { factor: i128 },
    /// The quotient is truncated toward zero.
    Truncated,
    /// The remainder, with the sign of the dividend.
    Remainder,
}

/// Divides exact numbers.
pub(super) fn divide_exact(
    division: Division,
    left: &ColumnarValue,
    right: &ColumnarValue,
    limits: Bounds,
    rows: usize,
) -> Result<ColumnarValue> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = validity_of_both(left, right, rows);
    let (x, y) = (to_wide(&left.column.data)?, to_wide(&right.column.data)?);
    let (x, y) = (Operand::new(x.as_slice(), left.is_scalar), Operand::new(y.as_slice(), right.is_scalar));
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let value = division.checked_apply(x.get(row), y.get(row));
        match value.filter(|value| limits.min <= *value && *value <= limits.max) {
            Some(value) => values.push(value),
            None if validity.as_ref().is_some_and(|bits: &Arc<Bitmap>| !bits.get(row)) => values.push(0),
            None => return Err(Error::UncomputableValue("a division by zero, or a result out of its type's range")),
        }
    }
    Ok(ColumnarValue { column: Column { data: narrow_if_possible(values), validity }, is_scalar })
}

/// Divides `float8` values. If `is_checked`, division by zero, overflow and underflow are errors.
pub(super) fn divide_floats(
    left: &ColumnarValue,
    right: &ColumnarValue,
    is_checked: bool,
    rows: usize,
) -> Result<ColumnarValue> {
    let (ColumnData::Floats(x), ColumnData::Floats(y)) = (&left.column.data, &right.column.data) else {
        return Err(Error::Internal("an operand of float division is not a float8"));
    };
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = validity_of_both(left, right, rows);
    let sides = (Operand::new(x, left.is_scalar), Operand::new(y, right.is_scalar));
    let values = zip_map(sides, rows, |x, y| x / y);
    let is_odd = |row: usize| {
        let (x, y, value) = (sides.0.get(row), sides.1.get(row), values[row]);
        let is_by_zero = y == 0.0 && !x.is_nan();
        is_by_zero || (value.is_infinite() && x.is_finite()) || (value == 0.0 && x != 0.0 && y.is_finite())
    };
    if is_checked && (0..rows).any(|row| is_odd(row) && validity.as_ref().is_none_or(|bits| bits.get(row))) {
        return Err(Error::UncomputableValue("a division by zero, or a result that overflows or underflows float8"));
    }
    Ok(ColumnarValue { column: Column { data: ColumnData::Floats(Arc::new(values)), validity }, is_scalar })
}

impl Division {
    /// Computes the quotient or remainder; returns `None` for a division by zero and for results beyond 128 bits.
    fn checked_apply(self, value: i128, divisor: i128) -> Option<i128> {
        match self {
            Self::Rounded { factor } => {
                let scaled = value.checked_mul(factor).filter(|scaled| *scaled != i128::MIN && divisor != 0)?;
                Some(divide_rounding(scaled, divisor))
            }
            Self::Truncated => value.checked_div(divisor),
            Self::Remainder => value.checked_rem(divisor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_float_quotients_fail_unless_null() {
        let column = |value: f64| Column::new(ColumnData::Floats(Arc::new(vec![value])));
        let computed = |column: Column| ColumnarValue { column, is_scalar: false };
        for (x, y, expected) in [
            (1.0, 4.0, Some(0.25)),
            (1.0, 0.0, None),
            (0.0, 0.0, None),
            (1e300, 1e-300, None),
            (1e-300, 1e300, None),
            (0.0, 3.0, Some(0.0)),
            (1.0, f64::INFINITY, Some(0.0)),
            (f64::INFINITY, 2.0, Some(f64::INFINITY)),
        ] {
            let given =
                divide_floats(&computed(column(x)), &computed(column(y)), true, 1).ok().map(|given| given.column.data);
            let given = given.map(|data| if let ColumnData::Floats(values) = data { values[0] } else { f64::NAN });
            assert_eq!(given, expected, "{x} / {y}");
            let null = Column { validity: Some(Arc::new(Bitmap::filled(1, false))), ..column(y) };
            assert!(divide_floats(&computed(column(x)), &computed(null), true, 1).is_ok(), "{x} / NULL");
            assert!(
                divide_floats(&computed(column(x)), &computed(column(y)), false, 1).is_ok(),
                "{x} / {y}, not checked"
            );
        }
    }

    #[test]
    fn quotients_round_away_from_zero_and_zero_divisors_fail() {
        let rounded = Division::Rounded { factor: 10 };
        for (division, value, divisor, expected) in [
            (rounded, 1, 4, Some(3)),
            (rounded, -1, 4, Some(-3)),
            (rounded, 1, -4, Some(-3)),
            (rounded, 7, 70, Some(1)),
            (rounded, 1, 0, None),
            (rounded, i128::MAX, 3, None),
            (Division::Truncated, -7, 2, Some(-3)),
            (Division::Truncated, i128::MIN, -1, None),
            (Division::Remainder, -7, 2, Some(-1)),
            (Division::Remainder, 7, 0, None),
        ] {
            assert_eq!(division.checked_apply(value, divisor), expected, "{division:?} of {value} and {divisor}");
        }
    }
}
