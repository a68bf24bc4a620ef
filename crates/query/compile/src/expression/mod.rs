//! Compiles DataFusion's expressions to the engine's: numeric functions in `numeric_functions.rs`, string functions in
//! `text_functions.rs`, date functions in `date_functions.rs`.

mod date_functions;
mod numeric_functions;
mod text_functions;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NegativeExpr,
    NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use engine::arrow_convert;
use engine::expression::{Comparison, Expression, SignOperation};
use functions::{hides_key, planned_lazy_case};

use crate::arrow_functions;
use crate::arrow_functions::PlannedExpression;

/// Compiles an expression over `schema`, with the planned expression as fallback where it may fail; `None` if a type
/// has no form in the engine.
pub(super) fn lower(expression: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Expression> {
    let lowered = lower_part(expression, schema)?;
    if lowered.never_fails() || matches!(lowered, Expression::ArrowCall { .. }) {
        return Some(lowered);
    }
    let fallback = Arc::new(PlannedExpression::new(expression, schema));
    Some(Expression::Fallible { value: Box::new(lowered), fallback })
}

/// Compiles an expression that may be part of another one.
fn lower_part(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Expression> {
    lower_native(expression, schema).or_else(|| arrow_functions::arrow_call(expression, schema))
}

/// Compiles an expression to a native one; `None` if there is none.
fn lower_native(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Expression> {
    let boxed = |part: &Arc<dyn PhysicalExpr>| lower_part(part, schema).map(Box::new);
    if let Some(column) = expression.downcast_ref::<Column>() {
        let is_held = arrow_convert::is_supported(schema.field(column.index()).data_type());
        return is_held.then(|| Expression::Column(column.index()));
    }
    if let Some(literal) = expression.downcast_ref::<Literal>() {
        return constant(literal.value());
    }
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        return lower_binary(binary, schema);
    }
    if let Some(not) = expression.downcast_ref::<NotExpr>() {
        return Some(Expression::Not(boxed(not.arg())?));
    }
    if let Some(negative) = expression.downcast_ref::<NegativeExpr>() {
        let is_float = negative.arg().data_type(schema).ok()? == DataType::Float64;
        return if is_float {
            Some(Expression::FloatSign { sign: SignOperation::Negate, value: boxed(negative.arg())? })
        } else {
            None
        };
    }
    if let Some(test) = expression.downcast_ref::<IsNullExpr>() {
        return Some(Expression::IsNull { value: boxed(test.arg())?, is_negated: false });
    }
    if let Some(test) = expression.downcast_ref::<IsNotNullExpr>() {
        return Some(Expression::IsNull { value: boxed(test.arg())?, is_negated: true });
    }
    if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        return widening_cast(cast, schema);
    }
    if let Some(list) = expression.downcast_ref::<InListExpr>() {
        return lower_in_list(list, schema);
    }
    if let Some(case) = expression.downcast_ref::<CaseExpr>() {
        return searched_case(case, schema);
    }
    if let Some(like) = expression.downcast_ref::<LikeExpr>() {
        return text_functions::lower_like(like, schema);
    }
    if let Some(case) = planned_lazy_case(expression) {
        return searched_case(&case, schema);
    }
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    if let (true, Some(key)) = (hides_key(call.fun()), call.args().first()) {
        return lower_part(key, schema);
    }
    numeric_functions::call(call, schema)
        .or_else(|| text_functions::call(call, schema))
        .or_else(|| date_functions::call(call, schema))
}

fn constant(value: &ScalarValue) -> Option<Expression> {
    let is_held = arrow_convert::is_supported(&value.data_type());
    let array = is_held.then(|| value.to_array_of_size(1).ok()).flatten()?;
    arrow_convert::from_array(&array).ok().map(Expression::Constant)
}

/// Returns whether a type is represented as integers with the same order.
fn is_integer(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt32
            | DataType::Date32
            | DataType::Time64(_)
            | DataType::Timestamp(..)
    ) && arrow_convert::is_supported(data_type)
}

/// Compiles a comparison, AND, OR or concatenation.
fn lower_binary(binary: &BinaryExpr, schema: &Schema) -> Option<Expression> {
    let comparison = match binary.op() {
        Operator::And => return Some(Expression::And(operands(binary, Operator::And, schema)?)),
        Operator::Or => return Some(Expression::Or(operands(binary, Operator::Or, schema)?)),
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        Operator::StringConcat => return text_functions::lower_concatenation(binary, schema),
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => return lower_truth_test(binary, schema),
        _ => return None,
    };
    let (left, right) = (binary.left(), binary.right());
    if text_functions::is_text(left, schema) && text_functions::is_text(right, schema) {
        return text_functions::lower_comparison(comparison, left, right, schema);
    }
    let factors = match (left.data_type(schema).ok()?, right.data_type(schema).ok()?) {
        (DataType::Decimal128(_, x), DataType::Decimal128(_, y)) => {
            let scale = x.max(y);
            (power_of_ten(scale - x)?, power_of_ten(scale - y)?)
        }
        (DataType::Float64, DataType::Float64)
        | (DataType::Float32, DataType::Float32)
        | (DataType::FixedSizeBinary(_), DataType::FixedSizeBinary(_)) => (1, 1),
        (x, y) if x == y && is_integer(&x) => (1, 1),
        _ => return None,
    };
    let (left, right) = (Box::new(lower_part(left, schema)?), Box::new(lower_part(right, schema)?));
    Some(Expression::Compare { comparison, left, right, factors })
}

/// Compiles IS [NOT] TRUE and IS [NOT] FALSE, which are comparisons with a literal that treat NULL as a value. A CASE
/// has the tested condition once: conditions that guard each other nest, and two copies each would double with every
/// level.
fn lower_truth_test(binary: &BinaryExpr, schema: &Schema) -> Option<Expression> {
    let ScalarValue::Boolean(Some(tested)) = binary.right().downcast_ref::<Literal>()?.value() else { return None };
    let condition = lower_part(binary.left(), schema)?;
    let condition = if *tested { condition } else { Expression::Not(Box::new(condition)) };
    let is_distinct = *binary.op() == Operator::IsDistinctFrom;
    let truth = |value| constant(&ScalarValue::Boolean(Some(value)));
    let branches = vec![(condition, truth(!is_distinct)?)];
    Some(Expression::Case { branches, otherwise: Some(Box::new(truth(is_distinct)?)) })
}

/// Flattens nested operands of AND or OR.
fn operands(binary: &BinaryExpr, operator: Operator, schema: &Schema) -> Option<Vec<Expression>> {
    let mut all = Vec::new();
    for side in [binary.left(), binary.right()] {
        match side.downcast_ref::<BinaryExpr>().filter(|inner| *inner.op() == operator) {
            Some(inner) => all.extend(operands(inner, operator, schema)?),
            None => all.push(lower_part(side, schema)?),
        }
    }
    Some(all)
}

fn power_of_ten(exponent: i8) -> Option<i64> {
    10_i64.checked_pow(u32::try_from(exponent).ok()?)
}

/// Compiles a cast that loses no digits.
fn widening_cast(cast: &CastExpr, schema: &Schema) -> Option<Expression> {
    let (from, to) = (cast.expr().data_type(schema).ok()?, cast.cast_type());
    let value = || lower_part(cast.expr(), schema);
    let width = |data_type: &DataType| match data_type {
        DataType::Int8 => Some(1),
        DataType::Int16 => Some(2),
        DataType::Int32 => Some(4),
        DataType::Int64 => Some(8),
        _ => None,
    };
    match (&from, to) {
        (from, to) if from == to => value(),
        (DataType::Float32, DataType::Float64) => value(),
        (from, to) if width(from).zip(width(to)).is_some_and(|(from, to)| from <= to) => value(),
        (DataType::Decimal128(_, x), DataType::Decimal128(precision, y)) if x <= y => {
            numeric_functions::scaled(value()?, power_of_ten(y - x)?, integer_bounds(*precision)?)
        }
        (from, DataType::Decimal128(precision, scale)) if width(from).is_some() && 0 <= *scale => {
            numeric_functions::scaled(value()?, power_of_ten(*scale)?, integer_bounds(*precision)?)
        }
        _ => None,
    }
}

/// Returns the smallest and the largest integer of this many digits.
fn integer_bounds(precision: u8) -> Option<(i128, i128)> {
    let beyond = 10_i128.checked_pow(precision.into())?;
    Some((1 - beyond, beyond - 1))
}

/// Compiles an IN list.
fn lower_in_list(list: &InListExpr, schema: &Schema) -> Option<Expression> {
    if text_functions::is_text(list.expr(), schema) {
        return text_functions::lower_in_list(list, schema);
    }
    let data_type = list.expr().data_type(schema).ok()?;
    let items = list.list().iter().map(|item| Some(item.downcast_ref::<Literal>()?.value()));
    let items = items.collect::<Option<Vec<&ScalarValue>>>()?;
    if !items.iter().all(|item| item.data_type() == data_type) {
        return None;
    }
    let (value, is_negated) = (Box::new(lower_part(list.expr(), schema)?), list.negated());
    if matches!(data_type, DataType::Float32 | DataType::Float64) {
        let float = |item: &&ScalarValue| match item {
            ScalarValue::Float64(value) => *value,
            ScalarValue::Float32(value) => value.map(f64::from),
            _ => None,
        };
        let list = items.iter().map(float).collect::<Option<Vec<f64>>>()?.into();
        return Some(Expression::FloatInList { value, list, is_negated });
    }
    let mut values = items.into_iter().map(integer_of).collect::<Option<Vec<i64>>>()?;
    values.sort_unstable();
    values.dedup();
    Some(Expression::InList { value, list: values.into(), is_negated })
}

/// Returns the integer that represents a value in the engine; `None` for NULL and for other types.
fn integer_of(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(i64::from),
        ScalarValue::Int64(value) | ScalarValue::TimestampMicrosecond(value, _) => *value,
        ScalarValue::Decimal128(value, ..) => value.and_then(|value| i64::try_from(value).ok()),
        _ => None,
    }
}

/// Maximum number of nodes of a simple CASE's operand that is compared with each WHEN natively; a larger one is
/// evaluated once, over arrays.
const OPERAND_NODES_MAX: usize = 8;

/// Returns whether an expression has more than `most` nodes.
fn nodes_exceed(expression: &Arc<dyn PhysicalExpr>, most: usize) -> bool {
    let mut nodes = 0;
    let mut open = vec![expression];
    while let Some(next) = open.pop() {
        nodes += 1;
        if nodes > most {
            return true;
        }
        open.extend(next.children());
    }
    false
}

/// Compiles a CASE, rewriting a simple one to a searched one.
fn searched_case(case: &CaseExpr, schema: &Schema) -> Option<Expression> {
    // Values of types that the engine only carries are chosen over arrays.
    if !arrow_convert::is_comparable(&case.data_type(schema).ok()?) {
        return None;
    }
    let branches = case.when_then_expr().iter().map(|(condition, value)| {
        let condition = match case.expr() {
            // The operand is evaluated for each branch.
            Some(compared) if is_volatile(compared) || nodes_exceed(compared, OPERAND_NODES_MAX) => return None,
            Some(compared) => {
                let is_equal = BinaryExpr::new(Arc::clone(compared), Operator::Eq, Arc::clone(condition));
                lower_binary(&is_equal, schema)?
            }
            None => lower_part(condition, schema)?,
        };
        Some((condition, lower_part(value, schema)?))
    });
    let otherwise = match case.else_expr() {
        // An untyped NULL means no ELSE.
        Some(value) if value.downcast_ref::<Literal>().is_some_and(|literal| literal.value().is_null()) => None,
        Some(value) => Some(Box::new(lower_part(value, schema)?)),
        None => None,
    };
    Some(Expression::Case { branches: branches.collect::<Option<_>>()?, otherwise })
}
