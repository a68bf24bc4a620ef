//! Calls over columns of strings: what engines need to know to make them without arrays.

use datafusion::logical_expr::ScalarUDF;
use types::SqlType;

use super::function::ResolvedFunction;

/// What a function does with its first argument, a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCall {
    Upper,
    Lower,
    /// In characters.
    Length,
    /// From a place on, so many characters or all.
    Substring,
    /// So many characters; of a negative number, all but so many at the end.
    Left,
    /// Without spaces at the ends, or without the characters of another string.
    Trim {
        at_start: bool,
        at_end: bool,
    },
}

/// What the function does with a string; `None` for all others.
#[must_use]
pub fn text_call(function: &ScalarUDF) -> Option<TextCall> {
    let Some(call) = function.inner().downcast_ref::<ResolvedFunction>() else {
        return match function.name() {
            "upper" => Some(TextCall::Upper),
            "lower" => Some(TextCall::Lower),
            "character_length" => Some(TextCall::Length),
            _ => None,
        };
    };
    match (call.name(), call.takes()) {
        ("substring" | "substr", [SqlType::Text, SqlType::Int4] | [SqlType::Text, SqlType::Int4, SqlType::Int4]) => {
            Some(TextCall::Substring)
        }
        ("left", [SqlType::Text, SqlType::Int4]) => Some(TextCall::Left),
        ("btrim" | "trim", _) => Some(TextCall::Trim { at_start: true, at_end: true }),
        ("ltrim", _) => Some(TextCall::Trim { at_start: true, at_end: false }),
        ("rtrim", _) => Some(TextCall::Trim { at_start: false, at_end: true }),
        _ => None,
    }
}
