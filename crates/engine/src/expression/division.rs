//! Quotients and remainders.

use std::sync::Arc;

use types::numeric::divide_rounding;

use super::arithmetic::{Side, narrowed, widened};
use super::{Computed, both_valid};
use crate::{Bits, Bounds, Column, Error, Result};

/// How one number is divided by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// The digits divided are multiplied by a factor first, the quotient is rounded half away from zero.
    Rounded { factor: i128 },
    /// What is after the point is left out.
    Truncated,
    /// What is left, of the sign of what is divided.
    Remainder,
}

/// Quotients of integers, or of numerics' digits.
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
            None => return Err(Error::Value("divided by zero, or out of the type's range")),
        }
    }
    Ok(Computed { column: Column { data: narrowed(values), validity }, is_scalar })
}

impl Division {
    /// `None` for a division by zero, and beyond 128 bits.
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
