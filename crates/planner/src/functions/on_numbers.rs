//! Calls over columns of integers and of numerics' digits: what engines need to know to make them without arrays.

use datafusion::logical_expr::ScalarUDF;
use types::SqlType;
use types::numeric::{Digits, power_of_ten};

use super::cast::CastFunction;
use super::function::ResolvedFunction;

/// What a function does with numbers, each an integer or a numeric's digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberCall {
    /// Both sides are multiplied by their factors first; the result lies within limits, or the call fails.
    Exact { operation: NumberOperation, factors: (i128, i128), limits: (i128, i128) },
    /// Of `float8`.
    Floating(NumberOperation),
    /// The one argument times a factor, within limits.
    Scaled { factor: i128, limits: (i128, i128) },
}

/// What is done with two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberOperation {
    Add,
    Subtract,
    Multiply,
}

/// What the function does with numbers, and of which types; `None` for all others.
#[must_use]
pub fn number_call(function: &ScalarUDF) -> Option<(NumberCall, Vec<SqlType>)> {
    let inner = function.inner();
    if let Some(call) = inner.downcast_ref::<ResolvedFunction>() {
        return Some((call.by_value()?.on_numbers()?, call.takes().to_vec()));
    }
    let cast = inner.downcast_ref::<CastFunction>()?;
    Some((scaled(cast.from(), cast.to())?, vec![cast.from().clone()]))
}

/// The cast that adds digits after the point, or none.
fn scaled(from: &SqlType, to: &SqlType) -> Option<NumberCall> {
    let limits = match to {
        SqlType::Int2 => (i16::MIN.into(), i16::MAX.into()),
        SqlType::Int4 => (i32::MIN.into(), i32::MAX.into()),
        SqlType::Int8 => (i64::MIN.into(), i64::MAX.into()),
        SqlType::Numeric { precision, .. } => {
            let beyond = power_of_ten(*precision);
            (1 - beyond, beyond - 1)
        }
        _ => return None,
    };
    let (from, to) = (Digits::of(from)?, Digits::of(to)?);
    // Fewer digits are rounded.
    Some(NumberCall::Scaled { factor: power_of_ten(to.scale.checked_sub(from.scale)?), limits })
}
