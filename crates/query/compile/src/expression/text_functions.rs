//! Compiles conditions on strings and string functions.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, InListExpr, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use engine::expression::{Comparison, Expression, LikePattern, TextCall, TextCondition, TextFunction};
use functions::{self, text_kernel};

use super::lower_part;

/// Returns whether an expression is a string.
pub(super) fn is_text(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let is_text = |of: DataType| matches!(of, DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8);
    expression.data_type(schema).is_ok_and(is_text)
}

/// Returns a literal string; `None` for anything else and for NULL.
pub(super) fn literal(expression: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    expression.downcast_ref::<Literal>()?.value().try_as_str().flatten()
}

/// Returns a call of a string function.
fn text_call(function: TextFunction, value: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Expression> {
    let value = Box::new(lower_part(value, schema)?);
    Some(Expression::TextCall { call: Arc::new(TextCall::new(function)), value })
}

/// Compiles a comparison of strings.
pub(super) fn lower_comparison(
    comparison: Comparison,
    left: &Arc<dyn PhysicalExpr>,
    right: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Option<Expression> {
    let with = |comparison, constant: &str, value| {
        text_call(
            TextFunction::Matches(TextCondition::Compare(comparison, constant.as_bytes().to_vec())),
            value,
            schema,
        )
    };
    match (literal(left), literal(right)) {
        (_, Some(constant)) => with(comparison, constant, left),
        (Some(constant), None) => with(swap_sides(comparison), constant, right),
        (None, None) => {
            let (left, right) = (Box::new(lower_part(left, schema)?), Box::new(lower_part(right, schema)?));
            Some(Expression::CompareTexts { comparison, left, right })
        }
    }
}

/// Returns the comparison with swapped sides.
fn swap_sides(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Greater => Comparison::Less,
        same @ (Comparison::Equal | Comparison::NotEqual) => same,
    }
}

/// Compiles an IN list of strings.
pub(super) fn lower_in_list(list: &InListExpr, schema: &Schema) -> Option<Expression> {
    let values = list.list().iter().map(|item| Some(literal(item)?.as_bytes().to_vec()));
    let among =
        text_call(TextFunction::Matches(TextCondition::In(values.collect::<Option<_>>()?)), list.expr(), schema)?;
    Some(if list.negated() { Expression::Not(Box::new(among)) } else { among })
}

/// Compiles LIKE for patterns that can be matched byte by byte; others, and case-insensitive ones, are matched over
/// arrays.
pub(super) fn lower_like(like: &LikeExpr, schema: &Schema) -> Option<Expression> {
    if like.case_insensitive() || !is_text(like.expr(), schema) {
        return None;
    }
    let pattern = LikePattern::parse(literal(like.pattern())?)?;
    text_call(TextFunction::Matches(TextCondition::Like { pattern, is_negated: like.negated() }), like.expr(), schema)
}

/// Compiles a concatenation. If one part is computed and the others are constants, dictionaries are preserved.
pub(super) fn lower_concatenation(binary: &BinaryExpr, schema: &Schema) -> Option<Expression> {
    let mut parts = Vec::new();
    collect(binary, &mut parts);
    if !parts.iter().all(|part| is_text(part, schema)) {
        return None;
    }
    let mut computed = parts.iter().enumerate().filter(|(_, part)| literal(part).is_none());
    match (computed.next(), computed.next()) {
        (Some((place, value)), None) => {
            let whole = |parts: &[&Arc<dyn PhysicalExpr>]| parts.iter().filter_map(|part| literal(part)).collect();
            let (before, after) = (whole(&parts[..place]), whole(&parts[place + 1..]));
            text_call(TextFunction::Affix { prefix: before, suffix: after }, value, schema)
        }
        _ => parts.iter().map(|part| lower_part(part, schema)).collect::<Option<_>>().map(Expression::Concat),
    }
}

/// Collects the parts of a concatenation.
fn collect<'a>(binary: &'a BinaryExpr, parts: &mut Vec<&'a Arc<dyn PhysicalExpr>>) {
    for side in [binary.left(), binary.right()] {
        match side.downcast_ref::<BinaryExpr>().filter(|inner| *inner.op() == Operator::StringConcat) {
            Some(inner) => collect(inner, parts),
            None => parts.push(side),
        }
    }
}

/// Compiles a call of a string function whose other arguments are constants.
pub(super) fn call(call: &ScalarFunctionExpr, schema: &Schema) -> Option<Expression> {
    let (value, rest) = call.args().split_first()?;
    let text = text_kernel(call.fun()).filter(|_| is_text(value, schema))?;
    let function = match (text, rest) {
        (functions::TextKernel::Upper, []) => TextFunction::Upper,
        (functions::TextKernel::Lower, []) => TextFunction::Lower,
        (functions::TextKernel::Length, []) => TextFunction::Length,
        (functions::TextKernel::Substring, [from]) => TextFunction::Substring { from: integer(from)?, end: i64::MAX },
        (functions::TextKernel::Substring, [from, count]) => {
            let from = integer(from)?;
            // A negative length is an error.
            let count = integer(count).filter(|count| 0 <= *count)?;
            TextFunction::Substring { from, end: from + count }
        }
        (functions::TextKernel::Left, [count]) => {
            let count = integer(count).filter(|count| 0 <= *count)?;
            TextFunction::Substring { from: 1, end: 1 + count }
        }
        (functions::TextKernel::Trim { at_start, at_end }, []) => {
            TextFunction::Trim { characters: " ".to_owned(), at_start, at_end }
        }
        (functions::TextKernel::Trim { at_start, at_end }, [cut]) => {
            TextFunction::Trim { characters: literal(cut)?.to_owned(), at_start, at_end }
        }
        _ => return None,
    };
    text_call(function, value, schema)
}

fn integer(argument: &Arc<dyn PhysicalExpr>) -> Option<i64> {
    match argument.downcast_ref::<Literal>()?.value() {
        ScalarValue::Int32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        _ => None,
    }
}
