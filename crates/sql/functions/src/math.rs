//! Mathematical functions: rounding, roots and logarithms with PostgreSQL's results and errors.

use arrow::array::ArrayRef;
use arrow::datatypes::{ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use datafusion::functions::math as m;
use types::numeric::{self, NumericPrecision};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::arithmetic::overflow;
use super::call::Call;
use super::cast::float_to_numeric;
use super::catalog_entry::catalog_entry;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};

#[cfg(test)]
mod tests;

const INT2: ResultType = ResultType::fixed(SqlType::Int2);
const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const INT8: ResultType = ResultType::fixed(SqlType::Int8);
const FLOAT8: ResultType = ResultType::fixed(SqlType::Float8);
const NUMERIC16: ResultType = ResultType::fixed(SqlType::Numeric { precision: 38, scale: 16 });
/// Result type of rounding to an integer, which can carry into one more digit.
const ROUNDED_TO_INTEGER: ResultType = ResultType::Computed(|a| Ok(rounded_to_integer_precision(&a[0]).sql_type()));

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "abs",
        "absolute value",
        &[
            Overload::rows(&[T::Int4], INT4, F::Overflow, abs_int4),
            Overload::rows(&[T::Int2], INT2, F::Overflow, abs_int2),
            Overload::rows(&[T::Int8], INT8, F::Overflow, abs_int8),
            Overload::rows(&[T::Float8], FLOAT8, F::Nothing, |call| float(call, |value| Ok(value.abs()))),
            Overload::rows(&[T::Float4], ResultType::fixed(SqlType::Float4), F::Nothing, abs_float4),
            Overload::rows(&[T::Numeric], ResultType::SameAs(0), F::Nothing, abs_numeric),
        ],
    )
    .in_catalog(&[
        catalog_entry(1394, "float4", "float4"),
        catalog_entry(1395, "float8", "float8"),
        catalog_entry(1396, "int8", "int8"),
        catalog_entry(1397, "int4", "int4"),
        catalog_entry(1398, "int2", "int2"),
        catalog_entry(1705, "numeric", "numeric"),
    ]),
    Definition::new("ceil", "nearest integer >= value", CEIL)
        .in_catalog(&[catalog_entry(1711, "numeric", "numeric"), catalog_entry(2308, "float8", "float8")]),
    Definition::new("ceiling", "nearest integer >= value", CEIL)
        .in_catalog(&[catalog_entry(2320, "float8", "float8"), catalog_entry(2167, "numeric", "numeric")]),
    Definition::new(
        "floor",
        "nearest integer <= value",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::Nothing, |call| float(call, |value| Ok(value.floor()))),
            Overload::rows(&[T::Numeric], ROUNDED_TO_INTEGER, F::Nothing, floor_numeric),
        ],
    )
    .in_catalog(&[catalog_entry(1712, "numeric", "numeric"), catalog_entry(2309, "float8", "float8")]),
    Definition::new(
        "round",
        "value rounded to a number of decimals, or to an integer",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::Nothing, |call| float(call, |value| Ok(value.round_ties_even()))),
            Overload::rows(&[T::Numeric], ROUNDED_TO_INTEGER, F::Nothing, round_numeric),
            Overload::rows(
                &[T::Numeric, T::Int4],
                ResultType::Computed(|a| Ok(precision_plus_one_digit(&a[0]).sql_type())),
                F::Digits,
                round_to,
            ),
        ],
    )
    .in_catalog(&[
        catalog_entry(1342, "float8", "float8"),
        catalog_entry(1707, "numeric,int4", "numeric"),
        catalog_entry(1708, "numeric", "numeric"),
    ]),
    Definition::new(
        "trunc",
        "value truncated to a number of decimals, or to an integer",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::Nothing, |call| float(call, |value| Ok(value.trunc()))),
            Overload::rows(&[T::Numeric], ROUNDED_TO_INTEGER, F::Nothing, trunc_numeric),
            Overload::rows(&[T::Numeric, T::Int4], ResultType::SameAs(0), F::Nothing, trunc_to),
        ],
    )
    .in_catalog(&[
        catalog_entry(1343, "float8", "float8"),
        catalog_entry(1709, "numeric,int4", "numeric"),
        catalog_entry(1710, "numeric", "numeric"),
    ]),
    Definition::new(
        "sign",
        "sign of value",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::Nothing, |call| {
                float(call, |value| Ok(if value == 0.0 { 0.0 } else { value.signum() }))
            }),
            Overload::rows(
                &[T::Numeric],
                ResultType::fixed(SqlType::Numeric { precision: 1, scale: 0 }),
                F::Nothing,
                sign_numeric,
            ),
        ],
    )
    .in_catalog(&[catalog_entry(1706, "numeric", "numeric"), catalog_entry(2310, "float8", "float8")]),
    Definition::new(
        "sqrt",
        "square root",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::SomeValues, |call| float(call, sqrt)),
            Overload::rows(&[T::Numeric], NUMERIC16, F::SomeValues, |call| through_float(call, sqrt)),
        ],
    )
    .in_catalog(&[catalog_entry(1344, "float8", "float8"), catalog_entry(1730, "numeric", "numeric")]),
    Definition::new(
        "cbrt",
        "cube root",
        &[Overload::rows(&[T::Float8], FLOAT8, F::Nothing, |call| float(call, |value| Ok(value.cbrt())))],
    )
    .in_catalog(&[catalog_entry(1345, "float8", "float8")]),
    Definition::new(
        "exp",
        "natural exponential",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::Overflow, |call| float(call, exp)),
            Overload::rows(&[T::Numeric], NUMERIC16, F::SomeValues, |call| through_float(call, exp)),
        ],
    )
    .in_catalog(&[catalog_entry(1347, "float8", "float8"), catalog_entry(1732, "numeric", "numeric")]),
    Definition::new(
        "ln",
        "natural logarithm",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::SomeValues, |call| float(call, |value| logarithm(value, f64::ln))),
            Overload::rows(&[T::Numeric], NUMERIC16, F::SomeValues, |call| {
                through_float(call, |value| logarithm(value, f64::ln))
            }),
        ],
    )
    .in_catalog(&[catalog_entry(1341, "float8", "float8"), catalog_entry(1734, "numeric", "numeric")]),
    Definition::new(
        "log",
        "logarithm, base 10 or the first argument",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::SomeValues, |call| {
                float(call, |value| logarithm(value, f64::log10))
            }),
            Overload::rows(&[T::Numeric], NUMERIC16, F::SomeValues, |call| {
                through_float(call, |value| logarithm(value, f64::log10))
            }),
            Overload::rows(&[T::Numeric, T::Numeric], NUMERIC16, F::SomeValues, log_base),
        ],
    )
    .in_catalog(&[
        catalog_entry(1340, "float8", "float8"),
        catalog_entry(1736, "numeric,numeric", "numeric"),
        catalog_entry(1741, "numeric", "numeric"),
    ]),
    Definition::new(
        "log10",
        "base 10 logarithm",
        &[
            Overload::rows(&[T::Float8], FLOAT8, F::SomeValues, |call| {
                float(call, |value| logarithm(value, f64::log10))
            }),
            Overload::rows(&[T::Numeric], NUMERIC16, F::SomeValues, |call| {
                through_float(call, |value| logarithm(value, f64::log10))
            }),
        ],
    )
    .in_catalog(&[catalog_entry(1194, "float8", "float8"), catalog_entry(1481, "numeric", "numeric")]),
    Definition::new(
        "div",
        "integer quotient truncated toward zero",
        &[Overload::rows(
            &[T::Numeric, T::Numeric],
            ResultType::fixed(SqlType::Numeric { precision: 38, scale: 0 }),
            F::SomeValues,
            div,
        )],
    )
    .in_catalog(&[catalog_entry(1973, "numeric,numeric", "numeric")]),
    Definition::new(
        "gcd",
        "greatest common divisor",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, F::Overflow, gcd_int4),
            Overload::rows(&[T::Int8, T::Int8], INT8, F::Overflow, gcd_int8),
        ],
    )
    .in_catalog(&[catalog_entry(5044, "int4,int4", "int4"), catalog_entry(5045, "int8,int8", "int8")]),
    Definition::new(
        "lcm",
        "least common multiple",
        &[
            Overload::rows(&[T::Int4, T::Int4], INT4, F::Overflow, lcm_int4),
            Overload::rows(&[T::Int8, T::Int8], INT8, F::Overflow, lcm_int8),
        ],
    )
    .in_catalog(&[catalog_entry(5046, "int4,int4", "int4"), catalog_entry(5047, "int8,int8", "int8")]),
    Definition::new(
        "factorial",
        "factorial",
        &[Overload::rows(
            &[T::Int8],
            ResultType::fixed(SqlType::Numeric { precision: 38, scale: 0 }),
            F::SomeValues,
            factorial,
        )],
    )
    .in_catalog(&[catalog_entry(1376, "int8", "numeric")]),
    Definition::new(
        "width_bucket",
        "bucket number of operand in equal-width histogram",
        &[Overload::rows(&[T::Float8, T::Float8, T::Float8, T::Int4], INT4, F::SomeValues, width_bucket)],
    )
    .in_catalog(&[catalog_entry(320, "float8,float8,float8,int4", "int4")]),
    Definition::new(
        "scale",
        "number of decimal digits in the fractional part",
        &[Overload::rows(&[T::Numeric], INT4, F::Nothing, scale)],
    )
    .in_catalog(&[catalog_entry(3281, "numeric", "int4")]),
    Definition::new("pi", "PI", &[Overload::builtin(&[], FLOAT8, F::Nothing, m::pi)])
        .in_catalog(&[catalog_entry(1610, "", "float8")]),
    Definition::new(
        "radians",
        "degrees to radians",
        &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::radians)],
    )
    .in_catalog(&[catalog_entry(1609, "float8", "float8")]),
    Definition::new(
        "degrees",
        "radians to degrees",
        &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::degrees)],
    )
    .in_catalog(&[catalog_entry(1608, "float8", "float8")]),
    Definition::new("sin", "sine", &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::sin)])
        .in_catalog(&[catalog_entry(1604, "float8", "float8")]),
    Definition::new("cos", "cosine", &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::cos)])
        .in_catalog(&[catalog_entry(1605, "float8", "float8")]),
    Definition::new("tan", "tangent", &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::tan)])
        .in_catalog(&[catalog_entry(1606, "float8", "float8")]),
    Definition::new("cot", "cotangent", &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::cot)])
        .in_catalog(&[catalog_entry(1607, "float8", "float8")]),
    Definition::new(
        "asin",
        "arcsine",
        &[Overload::rows(&[T::Float8], FLOAT8, F::SomeValues, |call| {
            float(call, |value| inverse_trigonometric(value, f64::asin))
        })],
    )
    .in_catalog(&[catalog_entry(1600, "float8", "float8")]),
    Definition::new(
        "acos",
        "arccosine",
        &[Overload::rows(&[T::Float8], FLOAT8, F::SomeValues, |call| {
            float(call, |value| inverse_trigonometric(value, f64::acos))
        })],
    )
    .in_catalog(&[catalog_entry(1601, "float8", "float8")]),
    Definition::new("atan", "arctangent", &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::atan)])
        .in_catalog(&[catalog_entry(1602, "float8", "float8")]),
    Definition::new(
        "atan2",
        "arctangent, two arguments",
        &[Overload::builtin(&[T::Float8, T::Float8], FLOAT8, F::Nothing, m::atan2)],
    )
    .in_catalog(&[catalog_entry(1603, "float8,float8", "float8")]),
    Definition::new("sinh", "hyperbolic sine", &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::sinh)])
        .in_catalog(&[catalog_entry(2462, "float8", "float8")]),
    Definition::new("cosh", "hyperbolic cosine", &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::cosh)])
        .in_catalog(&[catalog_entry(2463, "float8", "float8")]),
    Definition::new("tanh", "hyperbolic tangent", &[Overload::builtin(&[T::Float8], FLOAT8, F::Nothing, m::tanh)])
        .in_catalog(&[catalog_entry(2464, "float8", "float8")]),
    Definition::volatile("random", "random value", &[Overload::rows(&[], FLOAT8, F::Nothing, random)])
        .in_catalog(&[catalog_entry(1598, "", "float8").volatile()]),
];

const CEIL: &[Overload] = &[
    Overload::rows(&[T::Float8], FLOAT8, F::Nothing, |call| float(call, |value| Ok(value.ceil()))),
    Overload::rows(&[T::Numeric], ROUNDED_TO_INTEGER, F::Nothing, ceil_numeric),
];

fn digits(sql_type: &SqlType) -> NumericPrecision {
    NumericPrecision::from_sql_type(sql_type).expect("argument of a numeric overload is not an exact number")
}

fn rounded_to_integer_precision(sql_type: &SqlType) -> NumericPrecision {
    let digits = digits(sql_type);
    NumericPrecision::new((digits.precision - digits.scale + 1).min(38), 0)
}

fn precision_plus_one_digit(sql_type: &SqlType) -> NumericPrecision {
    let digits = digits(sql_type);
    NumericPrecision::new((digits.precision + 1).min(38), digits.scale)
}

fn float(call: &Call<'_>, apply: impl Fn(f64) -> SqlResult<f64>) -> SqlResult<ArrayRef> {
    let values = call.column::<Float64Type>(0);
    call.build_primitive::<Float64Type>(|row| values.get(row).map(&apply).transpose())
}

/// Computes a function of a numeric in double precision, for results without an exact decimal form.
fn through_float(call: &Call<'_>, apply: impl Fn(f64) -> SqlResult<f64>) -> SqlResult<ArrayRef> {
    let (values, scale, result) = (call.column::<Decimal128Type>(0), call.scale(0), digits(call.result_type));
    call.build_primitive::<Decimal128Type>(|row| {
        values
            .get(row)
            .map(|value| apply(numeric::to_float(value, scale)).and_then(|value| float_to_numeric(value, 16, result)))
            .transpose()
    })
}

fn sqrt(value: f64) -> SqlResult<f64> {
    if value < 0.0 {
        return Err(SqlError::new(Condition::InvalidArgumentForPower, "cannot take square root of a negative number"));
    }
    Ok(value.sqrt())
}

fn exp(value: f64) -> SqlResult<f64> {
    let result = value.exp();
    if result.is_infinite() && value.is_finite() {
        return Err(SqlError::new(Condition::NumericValueOutOfRange, "value out of range: overflow"));
    }
    Ok(result)
}

fn logarithm(value: f64, apply: impl Fn(f64) -> f64) -> SqlResult<f64> {
    if value == 0.0 {
        return Err(SqlError::new(Condition::InvalidArgumentForLogarithm, "cannot take logarithm of zero"));
    }
    if value < 0.0 {
        return Err(SqlError::new(
            Condition::InvalidArgumentForLogarithm,
            "cannot take logarithm of a negative number",
        ));
    }
    Ok(apply(value))
}

fn inverse_trigonometric(value: f64, apply: impl Fn(f64) -> f64) -> SqlResult<f64> {
    if 1.0 < value.abs() {
        return Err(SqlError::new(Condition::NumericValueOutOfRange, "input is out of range"));
    }
    Ok(apply(value))
}

fn log_base(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (base, value) = (call.column::<Decimal128Type>(0), call.column::<Decimal128Type>(1));
    let (base_scale, value_scale, result) = (call.scale(0), call.scale(1), digits(call.result_type));
    call.build_primitive::<Decimal128Type>(|row| {
        let (Some(base), Some(value)) = (base.get(row), value.get(row)) else { return Ok(None) };
        let base = logarithm(numeric::to_float(base, base_scale), f64::ln)?;
        let value = logarithm(numeric::to_float(value, value_scale), f64::ln)?;
        if base == 0.0 {
            return Err(SqlError::new(Condition::DivisionByZero, "division by zero"));
        }
        float_to_numeric(value / base, 15, result).map(Some)
    })
}

fn integer<P: ArrowPrimitiveType>(
    call: &Call<'_>,
    name: &str,
    apply: impl Fn(P::Native) -> Option<P::Native>,
) -> SqlResult<ArrayRef> {
    let values = call.column::<P>(0);
    call.build_primitive::<P>(|row| {
        let applied = values.get(row).map(|value| {
            apply(value).ok_or_else(|| SqlError::new(Condition::NumericValueOutOfRange, format!("{name} out of range")))
        });
        applied.transpose()
    })
}

fn abs_int2(call: &Call<'_>) -> SqlResult<ArrayRef> {
    integer::<Int16Type>(call, "smallint", i16::checked_abs)
}

fn abs_float4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let values = call.column::<Float32Type>(0);
    call.build_primitive::<Float32Type>(|row| Ok(values.get(row).map(f32::abs)))
}

fn abs_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    integer::<Int32Type>(call, "integer", i32::checked_abs)
}

fn abs_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    integer::<Int64Type>(call, "bigint", i64::checked_abs)
}

fn decimal(call: &Call<'_>, apply: impl Fn(i128, u8) -> SqlResult<i128>) -> SqlResult<ArrayRef> {
    let (values, scale) = (call.column::<Decimal128Type>(0), call.scale(0));
    call.build_primitive::<Decimal128Type>(|row| values.get(row).map(|value| apply(value, scale)).transpose())
}

fn abs_numeric(call: &Call<'_>) -> SqlResult<ArrayRef> {
    decimal(call, |value, _| Ok(value.abs()))
}

fn ceil_numeric(call: &Call<'_>) -> SqlResult<ArrayRef> {
    decimal(call, |value, scale| Ok(-((-value).div_euclid(numeric::power_of_ten(scale)))))
}

fn floor_numeric(call: &Call<'_>) -> SqlResult<ArrayRef> {
    decimal(call, |value, scale| Ok(value.div_euclid(numeric::power_of_ten(scale))))
}

fn trunc_numeric(call: &Call<'_>) -> SqlResult<ArrayRef> {
    decimal(call, |value, scale| Ok(value / numeric::power_of_ten(scale)))
}

fn round_numeric(call: &Call<'_>) -> SqlResult<ArrayRef> {
    decimal(call, |value, scale| Ok(numeric::divide_rounding(value, numeric::power_of_ten(scale))))
}

fn sign_numeric(call: &Call<'_>) -> SqlResult<ArrayRef> {
    decimal(call, |value, _| Ok(value.signum()))
}

/// Rounds or truncates to a number of decimals. The type keeps its scale, so the digits beyond become zero.
fn to_places(call: &Call<'_>, cut: impl Fn(i128, i128) -> i128) -> SqlResult<ArrayRef> {
    let (values, places, scale) = (call.column::<Decimal128Type>(0), call.column::<Int32Type>(1), call.scale(0));
    call.build_primitive::<Decimal128Type>(|row| {
        let (Some(value), Some(places)) = (values.get(row), places.get(row)) else { return Ok(None) };
        let dropped = i64::from(scale) - i64::from(places);
        match u8::try_from(dropped) {
            Ok(0) | Err(_) if dropped <= 0 => Ok(Some(value)),
            Ok(dropped) if dropped <= 38 => {
                let unit = numeric::power_of_ten(dropped);
                let kept = cut(value, unit).checked_mul(unit).ok_or_else(overflow)?;
                numeric::check_fits(kept, NumericPrecision::new(38, scale)).map(Some)
            }
            _ => Ok(Some(0)),
        }
    })
}

fn round_to(call: &Call<'_>) -> SqlResult<ArrayRef> {
    to_places(call, numeric::divide_rounding)
}

fn trunc_to(call: &Call<'_>) -> SqlResult<ArrayRef> {
    to_places(call, |value, unit| value / unit)
}

fn div(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (a, b) = (call.column::<Decimal128Type>(0), call.column::<Decimal128Type>(1));
    let scale = call.scale(0).max(call.scale(1));
    call.build_primitive::<Decimal128Type>(|row| {
        let (Some(a), Some(b)) = (a.get(row), b.get(row)) else { return Ok(None) };
        if b == 0 {
            return Err(SqlError::new(Condition::DivisionByZero, "division by zero"));
        }
        let a = numeric::rescale(a, call.scale(0), scale).ok_or_else(overflow)?;
        let b = numeric::rescale(b, call.scale(1), scale).ok_or_else(overflow)?;
        Ok(Some(a / b))
    })
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

fn gcd_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (a, b) = (call.column::<Int32Type>(0), call.column::<Int32Type>(1));
    call.build_primitive::<Int32Type>(|row| {
        let (Some(a), Some(b)) = (a.get(row), b.get(row)) else { return Ok(None) };
        let divisor = greatest_divisor(a.unsigned_abs().into(), b.unsigned_abs().into());
        i32::try_from(divisor)
            .map(Some)
            .map_err(|_| SqlError::new(Condition::NumericValueOutOfRange, "integer out of range"))
    })
}

fn gcd_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (a, b) = (call.column::<Int64Type>(0), call.column::<Int64Type>(1));
    call.build_primitive::<Int64Type>(|row| {
        let (Some(a), Some(b)) = (a.get(row), b.get(row)) else { return Ok(None) };
        let divisor = greatest_divisor(a.unsigned_abs(), b.unsigned_abs());
        i64::try_from(divisor)
            .map(Some)
            .map_err(|_| SqlError::new(Condition::NumericValueOutOfRange, "bigint out of range"))
    })
}

fn least_multiple(a: u64, b: u64) -> Option<i64> {
    if a == 0 || b == 0 {
        return Some(0);
    }
    i64::try_from((a / greatest_divisor(a, b)).checked_mul(b)?).ok()
}

fn lcm_int4(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (a, b) = (call.column::<Int32Type>(0), call.column::<Int32Type>(1));
    call.build_primitive::<Int32Type>(|row| {
        let (Some(a), Some(b)) = (a.get(row), b.get(row)) else { return Ok(None) };
        let multiple = least_multiple(a.unsigned_abs().into(), b.unsigned_abs().into())
            .and_then(|value| i32::try_from(value).ok());
        multiple.map(Some).ok_or_else(|| SqlError::new(Condition::NumericValueOutOfRange, "integer out of range"))
    })
}

fn lcm_int8(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (a, b) = (call.column::<Int64Type>(0), call.column::<Int64Type>(1));
    call.build_primitive::<Int64Type>(|row| {
        let (Some(a), Some(b)) = (a.get(row), b.get(row)) else { return Ok(None) };
        let multiple = least_multiple(a.unsigned_abs(), b.unsigned_abs());
        multiple.map(Some).ok_or_else(|| SqlError::new(Condition::NumericValueOutOfRange, "bigint out of range"))
    })
}

fn factorial(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let values = call.column::<Int64Type>(0);
    call.build_primitive::<Decimal128Type>(|row| {
        let Some(value) = values.get(row) else { return Ok(None) };
        if value < 0 {
            return Err(SqlError::new(
                Condition::NumericValueOutOfRange,
                "factorial of a negative number is undefined",
            ));
        }
        // 34! is the first factorial with more than 38 digits.
        if 33 < value {
            return Err(overflow());
        }
        Ok(Some((1..=i128::from(value)).product()))
    })
}

#[expect(clippy::cast_possible_truncation, reason = "a bucket lies between 0 and the count")]
fn width_bucket(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let argument = |index| call.column::<Float64Type>(index);
    let (value, low, high, count) = (argument(0), argument(1), argument(2), call.column::<Int32Type>(3));
    call.build_primitive::<Int32Type>(|row| {
        let (Some(value), Some(low), Some(high), Some(count)) =
            (value.get(row), low.get(row), high.get(row), count.get(row))
        else {
            return Ok(None);
        };
        let error = |message: &str| Err(SqlError::new(Condition::InvalidParameterValue, message));
        if count <= 0 {
            return error("count must be greater than zero");
        }
        if value.is_nan() || low.is_nan() || high.is_nan() {
            return error("operand, lower bound, and upper bound cannot be NaN");
        }
        if low == high {
            return error("lower bound cannot equal upper bound");
        }
        let (position, width) = if low < high { (value - low, high - low) } else { (low - value, low - high) };
        Ok(Some(if position < 0.0 {
            0
        } else if width <= position {
            count.saturating_add(1)
        } else {
            (position / width * f64::from(count)).floor() as i32 + 1
        }))
    })
}

fn scale(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (values, scale) = (call.column::<Decimal128Type>(0), call.scale(0));
    call.build_primitive::<Int32Type>(|row| Ok(values.get(row).map(|_| i32::from(scale))))
}

#[expect(clippy::cast_precision_loss, reason = "53 random bits fit a double exactly")]
fn random(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<Float64Type>(|_| {
        Ok(Some((call.session.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64))
    })
}
