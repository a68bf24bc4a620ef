//! Functions of one `float8`, and conversions from and to exact numbers.

use std::sync::Arc;

use types::numeric::to_float;

use super::computed::Computed;
use super::{Rounding, Sign};
use crate::{Bounds, Column, Data, Error, Result};

/// Converts exact numbers with `scale` digits after the decimal point to `float8`.
pub(super) fn of_exact(value: Computed, scale: u8) -> Result<Computed> {
    #[expect(clippy::cast_precision_loss, reason = "as PostgreSQL rounds it")]
    let floats = match (&value.column.data, scale) {
        (Data::Ints { values, .. }, 0) => values.iter().map(|value| *value as f64).collect(),
        (Data::Ints { values, .. }, scale) => values.iter().map(|value| to_float((*value).into(), scale)).collect(),
        (Data::Wide(values), scale) => values.iter().map(|value| to_float(*value, scale)).collect(),
        _ => return Err(Error::Form("the operand of a conversion to float8 is not an exact number")),
    };
    Ok(with(value, Data::Floats(Arc::new(floats))))
}

/// Converts `float8` values to the nearest integers, ties to even.
pub(super) fn whole(value: Computed, limits: Bounds) -> Result<Computed> {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "limits are powers of two, and values lie within them"
    )]
    let whole = |(row, float): (usize, &f64)| match float.round_ties_even() {
        rounded if limits.min as f64 <= rounded && rounded < (limits.max + 1) as f64 => Ok(rounded as i64),
        _ if !value.column.is_valid(row) => Ok(0),
        _ => Err(Error::Value("a result is out of its type's range")),
    };
    let values = floats(&value)?.iter().enumerate().map(whole).collect::<Result<Vec<_>>>()?;
    Ok(with(value, Data::Ints { values: Arc::new(values), bounds: limits }))
}

/// Rounds `float8` values to whole numbers.
pub(super) fn rounded(value: Computed, rounding: Rounding) -> Result<Computed> {
    mapped(
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
pub(super) fn signed(value: Computed, sign: Sign) -> Result<Computed> {
    mapped(
        value,
        match sign {
            Sign::Turned => |value: f64| -value,
            Sign::Dropped => f64::abs,
        },
    )
}

/// Applies a function to each `float8`.
fn mapped(value: Computed, of: fn(f64) -> f64) -> Result<Computed> {
    let values = floats(&value)?.iter().map(|value| of(*value)).collect();
    Ok(with(value, Data::Floats(Arc::new(values))))
}

fn floats(value: &Computed) -> Result<Arc<Vec<f64>>> {
    match &value.column.data {
        Data::Floats(values) => Ok(Arc::clone(values)),
        _ => Err(Error::Form("an operand is not a float8")),
    }
}

/// Replaces the values and keeps the validity.
fn with(value: Computed, data: Data) -> Computed {
    Computed { column: Column { data, ..value.column }, is_scalar: value.is_scalar }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bits;

    fn computed(values: &[f64]) -> Computed {
        Computed { column: Column::new(Data::Floats(Arc::new(values.to_vec()))), is_scalar: false }
    }

    #[test]
    fn halves_become_even() {
        let values = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e300, f64::INFINITY];
        let given = floats(&rounded(computed(&values), Rounding::Nearest).unwrap()).unwrap();
        assert_eq!(given.as_slice(), [-2.0, -2.0, 0.0, 0.0, 2.0, 2.0, 1e300, f64::INFINITY]);
        let given = whole(computed(&values[..6]), Bounds::I64).unwrap();
        let Data::Ints { values, .. } = &given.column.data else { panic!("whole numbers") };
        assert_eq!(values.as_slice(), [-2, -2, 0, 0, 2, 2]);
    }

    #[test]
    fn what_is_no_number_of_the_type_fails_unless_it_is_null() {
        let limits = Bounds { min: i32::MIN.into(), max: i32::MAX.into() };
        for value in [f64::NAN, f64::INFINITY, 2_147_483_647.5, -2_147_483_649.0] {
            assert!(matches!(whole(computed(&[value]), limits), Err(Error::Value(_))), "{value}");
            let mut null = computed(&[value]);
            null.column.validity = Some(Arc::new(Bits::all(1, false)));
            assert!(whole(null, limits).is_ok(), "{value}");
        }
        assert!(whole(computed(&[9_223_372_036_854_775_807.0]), Bounds::I64).is_err());
        assert!(whole(computed(&[-9_223_372_036_854_775_808.0, 2_147_483_647.4]), Bounds::I64).is_ok());
    }

    #[test]
    fn digits_become_the_nearest_double() {
        let exact = |data| Computed { column: Column::new(data), is_scalar: false };
        let narrow = exact(Data::Ints { values: Arc::new(vec![110, -5]), bounds: Bounds { min: -5, max: 110 } });
        assert_eq!(floats(&of_exact(narrow, 2).unwrap()).unwrap().as_slice(), [1.1, -0.05]);
        let wide = exact(Data::Wide(Arc::new(vec![123_456_789_012_345_678_901_234])));
        assert_eq!(floats(&of_exact(wide, 4).unwrap()).unwrap().as_slice(), [12_345_678_901_234_567_890.123_4]);
    }
}
