//! Describes numeric functions and casts that the vectorized engine evaluates with its own kernels, on integers,
//! unscaled decimals and doubles.

use datafusion::logical_expr::ScalarUDF;
use types::SqlType;
use types::numeric::{NumericPrecision, checked_power_of_ten, power_of_ten};
use types::text::{DATE_DAYS_MAX, DATE_DAYS_MIN, TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY};

use super::cast::CastFunction;
use super::scalar_udf::ResolvedFunction;

/// Kernel of a numeric function. Numerics are unscaled 128-bit integers; `limits` are the least and greatest result,
/// and a result beyond them fails with SQLSTATE 22003.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumericKernel {
    /// Exact operation; each side is multiplied by its factor first, to align the scales.
    Exact { operation: NumberOperation, factors: (i128, i128), limits: (i128, i128) },
    /// Exact division.
    Division { division: NumberDivision, limits: (i128, i128) },
    /// Operation on `float8`.
    FloatOperation(NumberOperation),
    /// Quotient of `float8`; division by zero, overflow and underflow fail.
    FloatQuotient,
    /// Cast of an integer, or of a numeric of scale `scale`, to `float8`.
    ToFloat { scale: u8 },
    /// Cast of a `float8` to an integer, rounded half to even.
    FromFloat { limits: (i128, i128) },
    /// Rounding of a `float8` to a whole number; [`NumberRounding::Nearest`] rounds half to even here.
    FloatRounding(NumberRounding),
    /// The only argument times a factor.
    ScaleUp { factor: i128, limits: (i128, i128) },
    /// The only argument divided by `divisor` and rounded.
    DivideAndRound { rounding: NumberRounding, divisor: i128, limits: (i128, i128) },
    /// First argument, a numeric of scale `scale`, rounded to the number of decimals given by the second argument.
    RoundToDecimals { rounding: NumberRounding, scale: u8, limits: (i128, i128) },
    /// Negation or absolute value of an exact number.
    SignChange { sign: SignChange, limits: (i128, i128) },
    /// Negation or absolute value of a `float8`.
    FloatSignChange(SignChange),
}

/// Rounding mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberRounding {
    /// To the nearest number, half away from zero.
    Nearest,
    Down,
    Up,
    TowardZero,
}

/// Change of a number's sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignChange {
    /// Negation.
    Negated,
    /// Absolute value.
    Absolute,
}

/// Operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberOperation {
    Add,
    Subtract,
    Multiply,
}

/// Division of two numbers; division by zero fails with SQLSTATE 22012.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberDivision {
    /// The dividend is multiplied by `factor` first, and the quotient is rounded half away from zero.
    Rounded { factor: i128 },
    /// The quotient is truncated toward zero.
    Truncated,
    /// The remainder, with the sign of the dividend.
    Remainder,
}

/// Returns the kernel of a numeric function and its argument types; `None` if there is none.
#[must_use]
pub fn numeric_kernel(function: &ScalarUDF) -> Option<(NumericKernel, Vec<SqlType>)> {
    let inner = function.inner();
    if let Some(call) = inner.downcast_ref::<ResolvedFunction>() {
        let done = call.single_value_arithmetic().and_then(|arithmetic| arithmetic.numeric_kernel());
        let done = done.or_else(|| remainder(call)).or_else(|| date_arithmetic(call));
        let done = done.or_else(|| rounding_kernel(call)).or_else(|| sign_kernel(call))?;
        return Some((done, call.argument_types().to_vec()));
    }
    let cast = inner.downcast_ref::<CastFunction>()?;
    Some((cast_kernel(cast.from(), cast.to())?, vec![cast.from().clone()]))
}

/// Recognizes `%` of integers.
fn remainder(call: &ResolvedFunction) -> Option<NumericKernel> {
    let is_integer = |of: &SqlType| matches!(of, SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    let is_it = call.name() == "%" && call.argument_types().iter().all(is_integer);
    let limits = (i64::MIN.into(), i64::MAX.into());
    is_it.then_some(NumericKernel::Division { division: NumberDivision::Remainder, limits })
}

/// Recognizes `round`, `floor`, `ceil` and `trunc`.
fn rounding_kernel(call: &ResolvedFunction) -> Option<NumericKernel> {
    let rounding = match call.name() {
        "round" => NumberRounding::Nearest,
        "floor" => NumberRounding::Down,
        "ceil" | "ceiling" => NumberRounding::Up,
        "trunc" => NumberRounding::TowardZero,
        _ => return None,
    };
    let beyond = power_of_ten(38);
    let limits = (1 - beyond, beyond - 1);
    match call.argument_types() {
        [SqlType::Float8] => Some(NumericKernel::FloatRounding(rounding)),
        [SqlType::Numeric { scale, .. }] => {
            Some(NumericKernel::DivideAndRound { rounding, divisor: checked_power_of_ten(*scale)?, limits })
        }
        [SqlType::Numeric { scale, .. }, SqlType::Int4] => {
            Some(NumericKernel::RoundToDecimals { rounding, scale: *scale, limits })
        }
        _ => None,
    }
}

/// Recognizes `abs` and unary minus.
fn sign_kernel(call: &ResolvedFunction) -> Option<NumericKernel> {
    let sign = match call.name() {
        "abs" => SignChange::Absolute,
        "negate" => SignChange::Negated,
        _ => return None,
    };
    match call.argument_types() {
        [SqlType::Float8] => Some(NumericKernel::FloatSignChange(sign)),
        [of] => Some(NumericKernel::SignChange { sign, limits: limits(of)? }),
        _ => None,
    }
}

/// Recognizes a date plus or minus days, and the difference of two dates.
fn date_arithmetic(call: &ResolvedFunction) -> Option<NumericKernel> {
    let dates = (DATE_DAYS_MIN.into(), DATE_DAYS_MAX.into());
    let (operation, limits) = match (call.name(), call.argument_types()) {
        ("+", [SqlType::Date, SqlType::Int4] | [SqlType::Int4, SqlType::Date]) => (NumberOperation::Add, dates),
        ("-", [SqlType::Date, SqlType::Int4]) => (NumberOperation::Subtract, dates),
        ("-", [SqlType::Date, SqlType::Date]) => (NumberOperation::Subtract, (i32::MIN.into(), i32::MAX.into())),
        _ => return None,
    };
    Some(NumericKernel::Exact { operation, factors: (1, 1), limits })
}

fn cast_kernel(from: &SqlType, to: &SqlType) -> Option<NumericKernel> {
    match (from, to) {
        (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, SqlType::Float8) => Some(NumericKernel::ToFloat { scale: 0 }),
        (SqlType::Numeric { scale, .. }, SqlType::Float8) => Some(NumericKernel::ToFloat { scale: *scale }),
        (SqlType::Float8, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) => {
            Some(NumericKernel::FromFloat { limits: limits(to)? })
        }
        (SqlType::Timestamp, SqlType::Date) => {
            let limits = (i32::MIN.into(), i32::MAX.into());
            Some(NumericKernel::DivideAndRound { rounding: NumberRounding::Down, divisor: US_PER_DAY.into(), limits })
        }
        (SqlType::Date, SqlType::Timestamp) => {
            let limits = (TIMESTAMP_US_MIN.into(), TIMESTAMP_US_MAX.into());
            Some(NumericKernel::ScaleUp { factor: US_PER_DAY.into(), limits })
        }
        (from, to) => rescale_kernel(from, to),
    }
}

/// Recognizes a cast between exact numbers, which changes the scale.
fn rescale_kernel(from: &SqlType, to: &SqlType) -> Option<NumericKernel> {
    let limits = limits(to)?;
    let (from, to) = (NumericPrecision::from_sql_type(from)?, NumericPrecision::from_sql_type(to)?);
    Some(match to.scale.checked_sub(from.scale) {
        Some(more) => NumericKernel::ScaleUp { factor: power_of_ten(more), limits },
        None => {
            let divisor = power_of_ten(from.scale - to.scale);
            NumericKernel::DivideAndRound { rounding: NumberRounding::Nearest, divisor, limits }
        }
    })
}

/// Returns the least and greatest value of an exact numeric type.
fn limits(of: &SqlType) -> Option<(i128, i128)> {
    Some(match of {
        SqlType::Int2 => (i16::MIN.into(), i16::MAX.into()),
        SqlType::Int4 => (i32::MIN.into(), i32::MAX.into()),
        SqlType::Int8 => (i64::MIN.into(), i64::MAX.into()),
        SqlType::Numeric { precision, .. } => {
            let beyond = power_of_ten(*precision);
            (1 - beyond, beyond - 1)
        }
        _ => return None,
    })
}
