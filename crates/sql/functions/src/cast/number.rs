//! Casts between numbers, and between numbers and booleans.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array, PrimitiveArray};
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, UInt32Type,
};
use types::numeric::{self, NumericPrecision};
use types::text::parse_numeric;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::{arrow_cast, missing_cast};

pub(super) fn convert(values: &ArrayRef, from: &SqlType, to: &SqlType) -> SqlResult<ArrayRef> {
    use SqlType as T;
    match (from, to) {
        (T::Bool, T::Int4) | (T::Int2, T::Int4 | T::Int8) | (T::Int4, T::Int8) | (T::Oid, T::Int8) => {
            arrow_cast(values, to)
        }
        (from, to) if from.is_oid() && to.is_oid() => Ok(Arc::clone(values)),
        (T::Int2 | T::Int4 | T::Int8 | T::Float4, T::Float8) | (T::Int2 | T::Int4 | T::Int8, T::Float4) => {
            arrow_cast(values, to)
        }
        (T::Int4, T::Bool) => {
            Ok(Arc::new(BooleanArray::from_unary(values.as_primitive::<Int32Type>(), |value| value != 0)))
        }
        (from, _) if from.is_oid() || matches!(from, T::Int2 | T::Int4 | T::Int8) => {
            from_integer(&arrow_cast(values, &T::Int8)?, to)
        }
        (T::Float4, T::Numeric { precision, scale }) => {
            let digits = NumericPrecision::new(*precision, *scale);
            decimals(values.as_primitive::<Float32Type>(), digits, |value| {
                float_to_numeric(f64::from(value), 5, digits)
            })
        }
        (T::Float8, T::Numeric { precision, scale }) => {
            let digits = NumericPrecision::new(*precision, *scale);
            decimals(values.as_primitive::<Float64Type>(), digits, |value| float_to_numeric(value, 14, digits))
        }
        (T::Float8, T::Float4) => map::<Float64Type, Float32Type>(values, narrow),
        (T::Float4 | T::Float8, T::Int2 | T::Int4 | T::Int8) => from_float(&arrow_cast(values, &T::Float8)?, to),
        (T::Numeric { scale, .. }, to) => from_numeric(values, *scale, to),
        _ => Err(missing_cast(from, to)),
    }
}

fn map<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    values: &ArrayRef,
    convert: impl Fn(A::Native) -> SqlResult<B::Native>,
) -> SqlResult<ArrayRef> {
    let converted: PrimitiveArray<B> = values.as_primitive::<A>().try_unary(convert)?;
    Ok(Arc::new(converted))
}

fn decimals<A: ArrowPrimitiveType>(
    values: &PrimitiveArray<A>,
    digits: NumericPrecision,
    convert: impl Fn(A::Native) -> SqlResult<i128>,
) -> SqlResult<ArrayRef> {
    let converted: Decimal128Array = values.try_unary(convert)?;
    Ok(Arc::new(converted.with_data_type(digits.sql_type().arrow_type())))
}

fn from_integer(values: &ArrayRef, to: &SqlType) -> SqlResult<ArrayRef> {
    match to {
        SqlType::Int2 => {
            map::<Int64Type, Int16Type>(values, |value| i16::try_from(value).map_err(|_| out_of_range("smallint")))
        }
        SqlType::Int4 => {
            map::<Int64Type, Int32Type>(values, |value| i32::try_from(value).map_err(|_| out_of_range("integer")))
        }
        SqlType::Int8 => Ok(Arc::clone(values)),
        oid if oid.is_oid() => map::<Int64Type, UInt32Type>(values, |value| {
            u32::try_from(value)
                .or_else(|_| i32::try_from(value).map(i32::cast_unsigned))
                .map_err(|_| out_of_range("OID"))
        }),
        SqlType::Numeric { precision, scale } => {
            let digits = NumericPrecision::new(*precision, *scale);
            decimals(values.as_primitive::<Int64Type>(), digits, |value| integer_to_numeric(value, digits))
        }
        _ => Err(missing_cast(&SqlType::Int8, to)),
    }
}

/// Casts floats to integers, rounding half to even.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn from_float(values: &ArrayRef, to: &SqlType) -> SqlResult<ArrayRef> {
    let whole = |value: f64, low: f64, end: f64, name: &'static str| {
        let rounded = value.round_ties_even();
        if low <= rounded && rounded < end { Ok(rounded as i64) } else { Err(out_of_range(name)) }
    };
    match to {
        SqlType::Int2 => map::<Float64Type, Int16Type>(values, |value| {
            whole(value, -32_768.0, 32_768.0, "smallint").map(|value| value as i16)
        }),
        SqlType::Int4 => map::<Float64Type, Int32Type>(values, |value| {
            whole(value, -2_147_483_648.0, 2_147_483_648.0, "integer").map(|value| value as i32)
        }),
        SqlType::Int8 => map::<Float64Type, Int64Type>(values, |value| {
            whole(value, -9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0, "bigint")
        }),
        _ => Err(missing_cast(&SqlType::Float8, to)),
    }
}

fn from_numeric(values: &ArrayRef, scale: u8, to: &SqlType) -> SqlResult<ArrayRef> {
    let whole = move |value: i128| round_to_integer(value, scale);
    match to {
        SqlType::Int2 => map::<Decimal128Type, Int16Type>(values, |value| {
            i16::try_from(whole(value)).map_err(|_| out_of_range("smallint"))
        }),
        SqlType::Int4 => map::<Decimal128Type, Int32Type>(values, |value| {
            i32::try_from(whole(value)).map_err(|_| out_of_range("integer"))
        }),
        SqlType::Int8 => map::<Decimal128Type, Int64Type>(values, |value| {
            i64::try_from(whole(value)).map_err(|_| out_of_range("bigint"))
        }),
        SqlType::Float8 => map::<Decimal128Type, Float64Type>(values, |value| Ok(numeric::to_float(value, scale))),
        SqlType::Float4 => map::<Decimal128Type, Float32Type>(values, |value| narrow(numeric::to_float(value, scale))),
        SqlType::Numeric { precision, scale: to_scale } => {
            let digits = NumericPrecision::new(*precision, *to_scale);
            decimals(values.as_primitive::<Decimal128Type>(), digits, |value| rescale_checked(value, scale, digits))
        }
        _ => Err(missing_cast(&SqlType::BARE_NUMERIC, to)),
    }
}

/// Rounds a numeric of scale `scale` to an integer, half away from zero.
pub(super) fn round_to_integer(value: i128, scale: u8) -> i128 {
    numeric::rescale(value, scale, 0).expect("a smaller scale cannot overflow")
}

pub(super) fn integer_to_numeric(value: i64, digits: NumericPrecision) -> SqlResult<i128> {
    let scaled = i128::from(value)
        .checked_mul(numeric::power_of_ten(digits.scale))
        .ok_or_else(|| numeric::field_overflow_error(digits.precision, digits.scale))?;
    numeric::check_fits(scaled, digits)
}

/// Rounds a numeric of scale `scale` to other digits.
///
/// # Errors
/// SQLSTATE 22003 if it does not fit.
pub(super) fn rescale_checked(value: i128, scale: u8, digits: NumericPrecision) -> SqlResult<i128> {
    let rescaled = numeric::rescale(value, scale, digits.scale)
        .ok_or_else(|| numeric::field_overflow_error(digits.precision, digits.scale))?;
    numeric::check_fits(rescaled, digits)
}

/// Converts numerics that arrive with other digits than their type's, as parameters do; `None` for all other values.
pub(crate) fn rescale_numeric(values: &ArrayRef, sql_type: &SqlType) -> Option<SqlResult<ArrayRef>> {
    match (values.data_type(), sql_type) {
        (DataType::Decimal128(_, scale), SqlType::Numeric { .. }) => {
            Some(from_numeric(values, u8::try_from(*scale).ok()?, sql_type))
        }
        _ => None,
    }
}

/// Casts a float to numeric through its decimal form, as PostgreSQL does; `decimals` is one less than the number of
/// significant digits (15 for `double precision`, 6 for `real`).
pub(crate) fn float_to_numeric(value: f64, decimals: usize, digits: NumericPrecision) -> SqlResult<i128> {
    if !value.is_finite() {
        let name = if value.is_nan() { "NaN" } else { "infinity" };
        return Err(SqlError::new(Condition::FeatureNotSupported, format!("cannot convert {name} to numeric")));
    }
    let text = format!("{value:.decimals$e}");
    let is_bare = digits.sql_type() == SqlType::BARE_NUMERIC;
    // Floats are inexact anyway: a numeric without a modifier rounds them instead of failing.
    if is_bare { parse_numeric(&text, 37, digits.scale) } else { parse_numeric(&text, digits.precision, digits.scale) }
}

#[expect(clippy::cast_possible_truncation, reason = "overflow and underflow are checked after")]
fn narrow(value: f64) -> SqlResult<f32> {
    let narrowed = value as f32;
    if narrowed.is_infinite() && value.is_finite() {
        return Err(SqlError::new(Condition::NumericValueOutOfRange, "value out of range: overflow"));
    }
    if narrowed == 0.0 && value != 0.0 {
        return Err(SqlError::new(Condition::NumericValueOutOfRange, "value out of range: underflow"));
    }
    Ok(narrowed)
}

/// Builds the error 22003 in PostgreSQL's words.
pub(crate) fn out_of_range(type_name: &str) -> SqlError {
    SqlError::new(Condition::NumericValueOutOfRange, format!("{type_name} out of range"))
}
