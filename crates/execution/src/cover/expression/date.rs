//! Calls of functions of dates and of moments.

use arrow::datatypes::Schema;
use datafusion::physical_expr::ScalarFunctionExpr;
use engine::expression::{Expression, TimeUnit};
use planner::functions::part_call;

use super::lower;
use super::text::literal;

pub(super) fn call(call: &ScalarFunctionExpr, schema: &Schema) -> Option<Expression> {
    let [name, value] = call.args() else { return None };
    let part = part_call(call.fun(), literal(name)?)?;
    let unit = if part.is_moment { TimeUnit::Microseconds } else { TimeUnit::Days };
    let value = Box::new(lower(value, schema)?);
    Some(Expression::DatePart { part: part.part, unit, value, is_float: part.is_float })
}
