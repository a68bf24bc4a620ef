//! Division and remainder.

use std::sync::Arc;

use types::numeric::divide_rounding;

use super::arithmetic::{Side, narrowed, widened, zipped};
use super::computed::{Computed, both_valid};
use crate::{Bits, Bounds, Column, Data, Error, Result};

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
pub(super) fn divided(
    division: Division,
    left: &Computed,
    right: &Computed,
    limits: Bounds,
    rows: usize,
) -> Result<Computed> {
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = both_valid(left, right, rows);
    let (x, y) = (widened(&left.column.data)?, widened(&right.column.data)?);
    let (x, y) = (Side::of(x.as_slice(), left.is_scalar), Side::of(y.as_slice(), right.is_scalar));
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let value = division.of(x.at(row), y.at(row));
        match value.filter(|value| limits.min <= *value && *value <= limits.max) {
            Some(value) => values.push(value),
            None if validity.as_ref().is_some_and(|bits: &Arc<Bits>| !bits.get(row)) => values.push(0),
            None => return Err(Error::Value("a division by zero, or a result out of its type's range")),
        }
    }
    Ok(Computed { column: Column { data: narrowed(values), validity }, is_scalar })
}

/// Divides `float8` values. If `is_checked`, division by zero, overflow and underflow are errors.
pub(super) fn floats(left: &Computed, right: &Computed, is_checked: bool, rows: usize) -> Result<Computed> {
    let (Data::Floats(x), Data::Floats(y)) = (&left.column.data, &right.column.data) else {
        return Err(Error::Form("an operand of float division is not a float8"));
    };
    let is_scalar = left.is_scalar && right.is_scalar;
    let rows = if is_scalar { 1 } else { rows };
    let validity = both_valid(left, right, rows);
    let sides = (Side::of(x, left.is_scalar), Side::of(y, right.is_scalar));
    let values = zipped(sides, rows, |x, y| x / y);
    let is_odd = |row: usize| {
        let (x, y, value) = (sides.0.at(row), sides.1.at(row), values[row]);
        let is_by_zero = y == 0.0 && !x.is_nan();
        is_by_zero || (value.is_infinite() && x.is_finite()) || (value == 0.0 && x != 0.0 && y.is_finite())
    };
    if is_checked && (0..rows).any(|row| is_odd(row) && validity.as_ref().is_none_or(|bits| bits.get(row))) {
        return Err(Error::Value("a division by zero, or a result that overflows or underflows float8"));
    }
    Ok(Computed { column: Column { data: Data::Floats(Arc::new(values)), validity }, is_scalar })
}

impl Division {
    /// Computes the quotient or remainder; returns `None` for a division by zero and for results beyond 128 bits.
    fn of(self, value: i128, divisor: i128) -> Option<i128> {
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
    fn quotients_of_floats_that_are_none_fail_unless_they_are_null() {
        let column = |value: f64| Column::new(Data::Floats(Arc::new(vec![value])));
        let computed = |column: Column| Computed { column, is_scalar: false };
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
            let given = floats(&computed(column(x)), &computed(column(y)), true, 1).ok().map(|given| given.column.data);
            let given = given.map(|data| if let Data::Floats(values) = data { values[0] } else { f64::NAN });
            assert_eq!(given, expected, "{x} / {y}");
            let null = Column { validity: Some(Arc::new(Bits::all(1, false))), ..column(y) };
            assert!(floats(&computed(column(x)), &computed(null), true, 1).is_ok(), "{x} / NULL");
            assert!(floats(&computed(column(x)), &computed(column(y)), false, 1).is_ok(), "{x} / {y}, not checked");
        }
    }

    #[test]
    fn quotients_are_rounded_away_from_zero_and_nothing_is_divided_by_it() {
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
            assert_eq!(division.of(value, divisor), expected, "{division:?} of {value} and {divisor}");
        }
    }
}
