//! Calls over columns of integers and of numerics' digits: what engines need to know to make them without arrays.

use datafusion::logical_expr::ScalarUDF;
use types::SqlType;
use types::numeric::{Digits, checked_power_of_ten, power_of_ten};
use types::text::{DATE_DAYS_MAX, DATE_DAYS_MIN, TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY};

use super::cast::CastFunction;
use super::function::ResolvedFunction;

/// What a function does with numbers, each an integer or a numeric's digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberCall {
    /// Both sides are multiplied by their factors first; the result lies within limits, or the call fails.
    Exact { operation: NumberOperation, factors: (i128, i128), limits: (i128, i128) },
    /// Both are divided; the result lies within limits, or the call fails.
    Divided { division: NumberDivision, limits: (i128, i128) },
    /// Of `float8`.
    Floating(NumberOperation),
    /// A quotient of `float8`; a division by zero fails, and what is beyond all finite numbers or below all of them.
    FloatQuotient,
    /// The same number, an integer or one with so many digits after the point, as `float8`.
    AsFloat { scale: u8 },
    /// A `float8` as the nearest whole number, an even one where two are as near.
    FromFloat { limits: (i128, i128) },
    /// A `float8` rounded to a whole one; to the nearest where two are as near to an even one.
    FloatRounded(NumberRounding),
    /// The one argument times a factor, within limits.
    Scaled { factor: i128, limits: (i128, i128) },
    /// The one argument divided and rounded, within limits.
    Cut { rounding: NumberRounding, divisor: i128, limits: (i128, i128) },
    /// The first argument, of so many digits after the point, rounded to as many as the second one says.
    ToPlaces { rounding: NumberRounding, scale: u8, limits: (i128, i128) },
    /// A number with its sign turned, or without it.
    Signed { sign: NumberSign, limits: (i128, i128) },
    /// The same of a `float8`.
    FloatSigned(NumberSign),
}

/// How a number becomes one with fewer digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberRounding {
    /// Away from zero where two are as near.
    Nearest,
    Down,
    Up,
    TowardZero,
}

/// What becomes of a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberSign {
    Turned,
    Dropped,
}

/// What is done with two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberOperation {
    Add,
    Subtract,
    Multiply,
}

/// How one number is divided by another; a division by zero fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberDivision {
    /// What is divided is multiplied by a factor first, the quotient is rounded half away from zero.
    Rounded { factor: i128 },
    /// What is after the point is left out.
    Truncated,
    /// What is left.
    Remainder,
}

/// What the function does with numbers, and of which types; `None` for all others.
#[must_use]
pub fn number_call(function: &ScalarUDF) -> Option<(NumberCall, Vec<SqlType>)> {
    let inner = function.inner();
    if let Some(call) = inner.downcast_ref::<ResolvedFunction>() {
        let done = call.by_value().and_then(|arithmetic| arithmetic.on_numbers());
        let done = done.or_else(|| remainder(call)).or_else(|| on_days(call));
        let done = done.or_else(|| rounded(call)).or_else(|| signed(call))?;
        return Some((done, call.takes().to_vec()));
    }
    let cast = inner.downcast_ref::<CastFunction>()?;
    Some((converted(cast.from(), cast.to())?, vec![cast.from().clone()]))
}

/// `%` of integers.
fn remainder(call: &ResolvedFunction) -> Option<NumberCall> {
    let is_integer = |of: &SqlType| matches!(of, SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    let is_it = call.name() == "%" && call.takes().iter().all(is_integer);
    let limits = (i64::MIN.into(), i64::MAX.into());
    is_it.then_some(NumberCall::Divided { division: NumberDivision::Remainder, limits })
}

/// `round`, `floor`, `ceil` and `trunc`.
fn rounded(call: &ResolvedFunction) -> Option<NumberCall> {
    let rounding = match call.name() {
        "round" => NumberRounding::Nearest,
        "floor" => NumberRounding::Down,
        "ceil" | "ceiling" => NumberRounding::Up,
        "trunc" => NumberRounding::TowardZero,
        _ => return None,
    };
    let beyond = power_of_ten(38);
    let limits = (1 - beyond, beyond - 1);
    match call.takes() {
        [SqlType::Float8] => Some(NumberCall::FloatRounded(rounding)),
        [SqlType::Numeric { scale, .. }] => {
            Some(NumberCall::Cut { rounding, divisor: checked_power_of_ten(*scale)?, limits })
        }
        [SqlType::Numeric { scale, .. }, SqlType::Int4] => {
            Some(NumberCall::ToPlaces { rounding, scale: *scale, limits })
        }
        _ => None,
    }
}

/// `abs` and the minus of one number.
fn signed(call: &ResolvedFunction) -> Option<NumberCall> {
    let sign = match call.name() {
        "abs" => NumberSign::Dropped,
        "negate" => NumberSign::Turned,
        _ => return None,
    };
    match call.takes() {
        [SqlType::Float8] => Some(NumberCall::FloatSigned(sign)),
        [of] => Some(NumberCall::Signed { sign, limits: limits(of)? }),
        _ => None,
    }
}

/// Days added to dates, and between dates.
fn on_days(call: &ResolvedFunction) -> Option<NumberCall> {
    let dates = (DATE_DAYS_MIN.into(), DATE_DAYS_MAX.into());
    let (operation, limits) = match (call.name(), call.takes()) {
        ("+", [SqlType::Date, SqlType::Int4] | [SqlType::Int4, SqlType::Date]) => (NumberOperation::Add, dates),
        ("-", [SqlType::Date, SqlType::Int4]) => (NumberOperation::Subtract, dates),
        ("-", [SqlType::Date, SqlType::Date]) => (NumberOperation::Subtract, (i32::MIN.into(), i32::MAX.into())),
        _ => return None,
    };
    Some(NumberCall::Exact { operation, factors: (1, 1), limits })
}

fn converted(from: &SqlType, to: &SqlType) -> Option<NumberCall> {
    match (from, to) {
        (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, SqlType::Float8) => Some(NumberCall::AsFloat { scale: 0 }),
        (SqlType::Numeric { scale, .. }, SqlType::Float8) => Some(NumberCall::AsFloat { scale: *scale }),
        (SqlType::Float8, SqlType::Int2 | SqlType::Int4 | SqlType::Int8) => {
            Some(NumberCall::FromFloat { limits: limits(to)? })
        }
        (SqlType::Timestamp, SqlType::Date) => {
            let limits = (i32::MIN.into(), i32::MAX.into());
            Some(NumberCall::Cut { rounding: NumberRounding::Down, divisor: US_PER_DAY.into(), limits })
        }
        (SqlType::Date, SqlType::Timestamp) => {
            let limits = (TIMESTAMP_US_MIN.into(), TIMESTAMP_US_MAX.into());
            Some(NumberCall::Scaled { factor: US_PER_DAY.into(), limits })
        }
        (from, to) => scaled(from, to),
    }
}

/// The cast that adds digits after the point, or none, or leaves some out.
fn scaled(from: &SqlType, to: &SqlType) -> Option<NumberCall> {
    let limits = limits(to)?;
    let (from, to) = (Digits::of(from)?, Digits::of(to)?);
    Some(match to.scale.checked_sub(from.scale) {
        Some(more) => NumberCall::Scaled { factor: power_of_ten(more), limits },
        None => {
            let divisor = power_of_ten(from.scale - to.scale);
            NumberCall::Cut { rounding: NumberRounding::Nearest, divisor, limits }
        }
    })
}

/// What a type of exact numbers holds.
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
