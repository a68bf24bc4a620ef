//! Describes string functions that the vectorized engine evaluates with its own kernels.

use datafusion::logical_expr::ScalarUDF;
use types::SqlType;

use super::scalar_udf::ResolvedFunction;

/// String function of the first argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKernel {
    Upper,
    Lower,
    /// Length in characters.
    Length,
    /// Substring from a position, to the end or of a given number of characters.
    Substring,
    /// First n characters; for a negative n, all but the last |n| characters.
    Left,
    /// Removes spaces, or the characters of a second string, at one end or both.
    Trim {
        at_start: bool,
        at_end: bool,
    },
}

/// Returns the string kernel of a function; `None` if there is none.
#[must_use]
pub fn text_kernel(function: &ScalarUDF) -> Option<TextKernel> {
    let Some(call) = function.inner().downcast_ref::<ResolvedFunction>() else {
        return match function.name() {
            "upper" => Some(TextKernel::Upper),
            "lower" => Some(TextKernel::Lower),
            "character_length" => Some(TextKernel::Length),
            _ => None,
        };
    };
    match (call.name(), call.argument_types()) {
        ("substring" | "substr", [SqlType::Text, SqlType::Int4] | [SqlType::Text, SqlType::Int4, SqlType::Int4]) => {
            Some(TextKernel::Substring)
        }
        ("left", [SqlType::Text, SqlType::Int4]) => Some(TextKernel::Left),
        ("btrim" | "trim", _) => Some(TextKernel::Trim { at_start: true, at_end: true }),
        ("ltrim", _) => Some(TextKernel::Trim { at_start: true, at_end: false }),
        ("rtrim", _) => Some(TextKernel::Trim { at_start: false, at_end: true }),
        _ => None,
    }
}
