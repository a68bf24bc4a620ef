//! Functions of one `float8`, and conversions from and to exact numbers.

use std::sync::Arc;

use types::numeric::to_float;

use super::columnar_value::ColumnarValue;
use super::{Rounding, SignOperation};
use crate::{Bounds, Column, ColumnData, Error, Result};

/// Converts exact numbers with `scale` digits after the decimal point to `float8`.
pub(super) fn from_exact(value: ColumnarValue, scale: u8) -> Result<ColumnarValue> {
    #[expect(clippy::cast_precision_loss, reason = "as PostgreSQL rounds it")]
    let floats = match (&value.column.data, scale) {
        (ColumnData::Ints { values, .. }, 0) => values.iter().map(|value| *value as f64).collect(),
        (ColumnData::Ints { values, .. }, scale) => {
            values.iter().map(|value| to_float((*value).into(), scale)).collect()
        }
        (ColumnData::WideInts(values), scale) => values.iter().map(|value| to_float(*value, scale)).collect(),
        _ => return Err(Error::Internal("the operand of a conversion to float8 is not an exact number")),
    };
    Ok(with_data(value, ColumnData::Floats(Arc::new(floats))))
}

/// Converts `float8` values to the nearest integers, ties to even.
pub(super) fn to_integers(value: ColumnarValue, limits: Bounds) -> Result<ColumnarValue> {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "limits are powers of two, and values lie within them"
    )]
    let whole = |(row, float): (usize, &f64)| match float.round_ties_even() {
        rounded if limits.min as f64 <= rounded && rounded < (limits.max + 1) as f64 => Ok(rounded as i64),
        _ if !value.column.is_valid(row) => Ok(0),
        _ => Err(Error::UncomputableValue("a result is out of its type's range")),
    };
    let values = floats(&value)?.iter().enumerate().map(whole).collect::<Result<Vec<_>>>()?;
    Ok(with_data(value, ColumnData::Ints { values: Arc::new(values), bounds: limits }))
}

/// Rounds `float8` values to whole numbers.
pub(super) fn round_floats(value: ColumnarValue, rounding: Rounding) -> Result<ColumnarValue> {
    map_floats(
        value,
        match rounding {
            Rounding::Nearest => f64::round_ties_even,
            Rounding::Down => f64::floor,
            Rounding::Up => f64::ceil,
            Rounding::TowardZero => f64::trunc,
        },
    )
}

/// Negates `float8` values or takes their absolute values.
pub(super) fn apply_sign(value: ColumnarValue, sign: SignOperation) -> Result<ColumnarValue> {
    map_floats(
        value,
        match sign {
            SignOperation::Negate => |value: f64| -value,
            SignOperation::Absolute => f64::abs,
        },
    )
}

/// Applies a function to each `float8`.
fn map_floats(value: ColumnarValue, of: fn(f64) -> f64) -> Result<ColumnarValue> {
    let values = floats(&value)?.iter().map(|value| of(*value)).collect();
    Ok(with_data(value, ColumnData::Floats(Arc::new(values))))
}

fn floats(value: &ColumnarValue) -> Result<Arc<Vec<f64>>> {
    match &value.column.data {
        ColumnData::Floats(values) => Ok(Arc::clone(values)),
        _ => Err(Error::Internal("an operand of a float8 function is not a float8")),
    }
}

/// Replaces the values and keeps the validity.
fn with_data(value: ColumnarValue, data: ColumnData) -> ColumnarValue {
    ColumnarValue { column: Column { data, ..value.column }, is_scalar: value.is_scalar }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bitmap;

    fn computed(values: &[f64]) -> ColumnarValue {
        ColumnarValue { column: Column::new(ColumnData::Floats(Arc::new(values.to_vec()))), is_scalar: false }
    }

    #[test]
    fn halves_become_even() {
        let values = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e300, f64::INFINITY];
        let given = floats(&round_floats(computed(&values), Rounding::Nearest).unwrap()).unwrap();
        assert_eq!(given.as_slice(), [-2.0, -2.0, 0.0, 0.0, 2.0, 2.0, 1e300, f64::INFINITY]);
        let given = to_integers(computed(&values[..6]), Bounds::I64).unwrap();
        let ColumnData::Ints { values, .. } = &given.column.data else { panic!("whole numbers") };
        assert_eq!(values.as_slice(), [-2, -2, 0, 0, 2, 2]);
    }

    #[test]
    fn out_of_range_conversions_fail_unless_null() {
        let limits = Bounds { min: i32::MIN.into(), max: i32::MAX.into() };
        for value in [f64::NAN, f64::INFINITY, 2_147_483_647.5, -2_147_483_649.0] {
            assert!(matches!(to_integers(computed(&[value]), limits), Err(Error::UncomputableValue(_))), "{value}");
            let mut null = computed(&[value]);
            null.column.validity = Some(Arc::new(Bitmap::filled(1, false)));
            assert!(to_integers(null, limits).is_ok(), "{value}");
        }
        assert!(to_integers(computed(&[9_223_372_036_854_775_807.0]), Bounds::I64).is_err());
        assert!(to_integers(computed(&[-9_223_372_036_854_775_808.0, 2_147_483_647.4]), Bounds::I64).is_ok());
    }

    #[test]
    fn digits_become_the_nearest_double() {
        let exact = |data| ColumnarValue { column: Column::new(data), is_scalar: false };
        let narrow = exact(ColumnData::Ints { values: Arc::new(vec![110, -5]), bounds: Bounds { min: -5, max: 110 } });
        assert_eq!(floats(&from_exact(narrow, 2).unwrap()).unwrap().as_slice(), [1.1, -0.05]);
        let wide = exact(ColumnData::WideInts(Arc::new(vec![123_456_789_012_345_678_901_234])));
        assert_eq!(floats(&from_exact(wide, 4).unwrap()).unwrap().as_slice(), [12_345_678_901_234_567_890.123_4]);
    }
}
