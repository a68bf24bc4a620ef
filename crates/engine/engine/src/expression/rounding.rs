//! Rounding of exact numbers to fewer digits.

use std::sync::Arc;

use types::numeric::divide_rounding;

use super::arithmetic::{narrow_if_possible, to_wide};
use super::columnar_value::ColumnarValue;
use crate::{Bounds, Column, ColumnData, Error, Result};

/// Rounding mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To the nearest value, ties away from zero for exact numbers and to even for floats.
    Nearest,
    /// Toward negative infinity.
    Down,
    /// Toward positive infinity.
    Up,
    /// Toward zero.
    TowardZero,
}

impl Rounding {
    /// Divides and rounds; returns `None` beyond 128 bits. The divisor must be positive.
    fn divide(self, value: i128, divisor: i128) -> Option<i128> {
        Some(match self {
            Self::Nearest => divide_rounding(value, divisor),
            Self::Down => value.div_euclid(divisor),
            Self::Up => -value.checked_neg()?.div_euclid(divisor),
            Self::TowardZero => value / divisor,
        })
    }

    /// Divides, rounds and multiplies 64-bit values, none of which may be `i64::MIN`.
    fn round_each(self, values: &[i64], divisor: i64, factor: i64) -> Vec<i64> {
        let values = values.iter().copied();
        match self {
            Self::Nearest => values.map(|value| divide_to_nearest(value, divisor) * factor).collect(),
            Self::Down => values.map(|value| value.div_euclid(divisor) * factor).collect(),
            Self::Up => values.map(|value| -(-value).div_euclid(divisor) * factor).collect(),
            Self::TowardZero => values.map(|value| value / divisor * factor).collect(),
        }
    }
}

/// Divides and rounds to the nearest value, ties away from zero.
fn divide_to_nearest(value: i64, divisor: i64) -> i64 {
    let (quotient, rest) = (value / divisor, (value % divisor).abs());
    if rest < divisor - rest { quotient } else { quotient + value.signum() }
}

/// Divides each value by `divisor`, rounds it and multiplies it by `factor`.
pub(super) fn round_exact(
    rounding: Rounding,
    value: ColumnarValue,
    (divisor, factor): (i128, i128),
    limits: Bounds,
) -> Result<ColumnarValue> {
    let ColumnarValue { column, is_scalar } = value;
    if let (ColumnData::Ints { values, bounds }, Ok(by), Ok(times)) =
        (&column.data, i64::try_from(divisor), i64::try_from(factor))
        && let Some(given) = result_bounds(rounding, *bounds, divisor, factor)
        && limits.min <= given.min
        && given.max <= limits.max
        && given.fit_i64()
        && i128::from(i64::MIN) < bounds.min
    {
        let values = Arc::new(rounding.round_each(values, by, times));
        return Ok(ColumnarValue {
            column: Column { data: ColumnData::Ints { values, bounds: given }, ..column },
            is_scalar,
        });
    }
    let values = to_wide(&column.data)?;
    let computed = values.iter().enumerate().map(|(row, value)| {
        let value = rounding.divide(*value, divisor).and_then(|value| value.checked_mul(factor));
        match value.filter(|value| limits.min <= *value && *value <= limits.max) {
            Some(value) => Ok(value),
            None if !column.is_valid(row) => Ok(0),
            None => Err(Error::UncomputableValue("a result is out of its type's range")),
        }
    });
    let data = narrow_if_possible(computed.collect::<Result<_>>()?);
    Ok(ColumnarValue { column: Column { data, ..column }, is_scalar })
}

/// Returns the bounds of the results for values within bounds; rounding is monotonic.
fn result_bounds(rounding: Rounding, bounds: Bounds, divisor: i128, factor: i128) -> Option<Bounds> {
    let of = |value| rounding.divide(value, divisor)?.checked_mul(factor);
    Some(Bounds { min: of(bounds.min)?, max: of(bounds.max)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bitmap;

    fn shown(rounding: Rounding, data: ColumnData, divisor: i128, factor: i128, limits: Bounds) -> Result<Vec<i128>> {
        let value = ColumnarValue { column: Column::new(data), is_scalar: false };
        let computed = round_exact(rounding, value, (divisor, factor), limits)?;
        Ok(to_wide(&computed.column.data)?.to_vec())
    }

    #[test]
    fn narrow_and_wide_numbers_are_rounded_alike() {
        let all = [-250, -249, -150, -101, -100, -50, -1, 0, 1, 49, 50, 149, 150, 151, 250];
        let limits = Bounds { min: -1000, max: 1000 };
        for (rounding, expected) in [
            (Rounding::Nearest, [-3, -2, -2, -1, -1, -1, 0, 0, 0, 0, 1, 1, 2, 2, 3]),
            (Rounding::Down, [-3, -3, -2, -2, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2]),
            (Rounding::Up, [-2, -2, -1, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3]),
            (Rounding::TowardZero, [-2, -2, -1, -1, -1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2]),
        ] {
            let bounds = Bounds { min: -250, max: 250 };
            let narrow = ColumnData::Ints { values: Arc::new(all.to_vec()), bounds };
            let wide = ColumnData::WideInts(Arc::new(all.iter().map(|value| i128::from(*value)).collect()));
            assert_eq!(shown(rounding, narrow.clone(), 100, 1, limits).unwrap(), expected, "{rounding:?}");
            assert_eq!(shown(rounding, wide, 100, 1, limits).unwrap(), expected, "{rounding:?} of wide ones");
            let places = expected.map(|value| value * 100);
            assert_eq!(shown(rounding, narrow, 100, 100, limits).unwrap(), places, "{rounding:?} to places");
        }
    }

    #[test]
    fn out_of_range_results_fail_unless_null() {
        let limits = Bounds { min: -9, max: 9 };
        let data = || ColumnData::Ints { values: Arc::new(vec![94, 95]), bounds: Bounds { min: 94, max: 95 } };
        assert!(matches!(shown(Rounding::Nearest, data(), 10, 1, limits), Err(Error::UncomputableValue(_))));
        assert_eq!(shown(Rounding::Down, data(), 10, 1, limits).unwrap(), [9, 9]);
        let column = Column { data: data(), validity: Some(Arc::new(Bitmap::from_fn(2, |row| row == 0))) };
        let value = ColumnarValue { column, is_scalar: false };
        assert!(round_exact(Rounding::Nearest, value, (10, 1), limits).is_ok());
        let least = ColumnData::Ints { values: Arc::new(vec![i64::MIN]), bounds: Bounds::from_value(i64::MIN.into()) };
        assert_eq!(shown(Rounding::Up, least, 1, 1, Bounds::I64).unwrap(), [i64::MIN.into()]);
    }
}
