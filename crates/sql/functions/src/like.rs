//! LIKE and ILIKE. DataFusion matches constant, well-formed patterns; all others are matched here as in PostgreSQL,
//! which raises an error for an escape character at the end of the pattern only when matching reaches it.

use arrow::array::ArrayRef;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Like;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::call::Call;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};
use super::fallibility;

#[cfg(test)]
mod tests;

const BOOL: ResultType = ResultType::fixed(SqlType::Bool);

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "~~",
        "matches LIKE expression",
        &[Overload::rows(&[T::Text, T::Text], BOOL, F::Computed(fallibility::like_pattern), |call| {
            like(call, LikeVariant::from_operator("~~"))
        })],
    ),
    Definition::new(
        "~~*",
        "matches LIKE expression, case-insensitive",
        &[Overload::rows(&[T::Text, T::Text], BOOL, F::Computed(fallibility::like_pattern), |call| {
            like(call, LikeVariant::from_operator("~~*"))
        })],
    ),
    Definition::new(
        "!~~",
        "does not match LIKE expression",
        &[Overload::rows(&[T::Text, T::Text], BOOL, F::Computed(fallibility::like_pattern), |call| {
            like(call, LikeVariant::from_operator("!~~"))
        })],
    ),
    Definition::new(
        "!~~*",
        "does not match LIKE expression, case-insensitive",
        &[Overload::rows(&[T::Text, T::Text], BOOL, F::Computed(fallibility::like_pattern), |call| {
            like(call, LikeVariant::from_operator("!~~*"))
        })],
    ),
];

/// Variant of the operator.
#[derive(Debug, Clone, Copy)]
struct LikeVariant {
    negated: bool,
    case_insensitive: bool,
}

impl LikeVariant {
    fn from_operator(operator: &str) -> Self {
        Self { negated: operator.starts_with('!'), case_insensitive: operator.ends_with('*') }
    }
}

/// Returns the operator's name.
#[must_use]
pub fn like_operator(negated: bool, case_insensitive: bool) -> &'static str {
    match (negated, case_insensitive) {
        (false, false) => "~~",
        (false, true) => "~~*",
        (true, false) => "!~~",
        (true, true) => "!~~*",
    }
}

/// Returns the call as DataFusion's LIKE if its pattern is constant and does not end in the escape character.
pub(crate) fn lower_constant_like(operator: &str, args: &[Expr]) -> Option<Expr> {
    if !DEFINITIONS.iter().any(|definition| definition.name == operator) {
        return None;
    }
    let [value, pattern] = args else { return None };
    let Expr::Literal(known, _) = pattern else { return None };
    if known.try_as_str().flatten().is_some_and(ends_in_escape) {
        return None;
    }
    let LikeVariant { negated, case_insensitive } = LikeVariant::from_operator(operator);
    Some(Expr::Like(Like::new(negated, Box::new(value.clone()), Box::new(pattern.clone()), None, case_insensitive)))
}

fn ends_in_escape(pattern: &str) -> bool {
    pattern.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn like(call: &Call<'_>, kind: LikeVariant) -> SqlResult<ArrayRef> {
    let (text, pattern) = (call.text(0), call.text(1));
    call.build_booleans(|row| {
        let (Some(text), Some(pattern)) = (text.get(row), pattern.get(row)) else { return Ok(None) };
        let matched = if kind.case_insensitive {
            matches(text.to_lowercase().as_bytes(), pattern.to_lowercase().as_bytes())
        } else {
            matches(text.as_bytes(), pattern.as_bytes())
        };
        matched.map(|matched| Some(matched != kind.negated))
    })
}

/// Returns whether a text matches a pattern; both are UTF-8.
fn matches(text: &[u8], pattern: &[u8]) -> SqlResult<bool> {
    let (mut t, mut p) = (0, 0);
    // Backtracking state of the last `%`: the pattern position after it, and the text position to retry from.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'%') => {
                while let Some(wild @ (b'%' | b'_')) = pattern.get(p) {
                    if *wild == b'_' {
                        if t == text.len() {
                            return Ok(false);
                        }
                        t = next(text, t);
                    }
                    p += 1;
                }
                match &pattern[p..] {
                    [] => return Ok(true),
                    [b'\\'] => return Err(trailing_escape_error()),
                    _ => retry = Some((p, t)),
                }
                continue;
            }
            Some(b'_') => {
                (t, p) = (next(text, t), p + 1);
                continue;
            }
            Some(b'\\') => match pattern.get(p + 1) {
                None => return Err(trailing_escape_error()),
                Some(byte) if *byte == text[t] => {
                    (t, p) = (t + 1, p + 2);
                    continue;
                }
                Some(_) => {}
            },
            Some(byte) if *byte == text[t] => {
                (t, p) = (t + 1, p + 1);
                continue;
            }
            _ => {}
        }
        let Some((pattern_at, text_at)) = retry else { return Ok(false) };
        (t, p) = (next(text, text_at), pattern_at);
        retry = Some((p, t));
    }
    Ok(pattern[p..].iter().all(|byte| *byte == b'%'))
}

/// Returns the position of the next character.
fn next(text: &[u8], at: usize) -> usize {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    at + 1 + text[at + 1..].iter().take_while(continues).count()
}

fn trailing_escape_error() -> SqlError {
    SqlError::new(Condition::InvalidEscapeSequence, "LIKE pattern must not end with escape character")
}
