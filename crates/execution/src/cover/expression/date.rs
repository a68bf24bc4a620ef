//! Calls of functions of dates and of moments.

use arrow::datatypes::Schema;
use datafusion::physical_expr::ScalarFunctionExpr;
use engine::expression::{DatePart, Expression, TimeUnit};
use planner::functions::{Part, part_call};

use super::lower;
use super::text::literal;

pub(super) fn call(call: &ScalarFunctionExpr, schema: &Schema) -> Option<Expression> {
    let [name, value] = call.args() else { return None };
    let part = part_call(call.fun(), literal(name)?)?;
    let unit = if part.is_moment { TimeUnit::Microseconds } else { TimeUnit::Days };
    let value = Box::new(lower(value, schema)?);
    let is_float = part.is_float;
    let part = match part.part {
        Part::Year => DatePart::Year,
        Part::Quarter => DatePart::Quarter,
        Part::Month => DatePart::Month,
        Part::Day => DatePart::Day,
        Part::DayOfWeek => DatePart::DayOfWeek,
        Part::IsoDayOfWeek => DatePart::IsoDayOfWeek,
        Part::DayOfYear => DatePart::DayOfYear,
        Part::Hour => DatePart::Hour,
        Part::Minute => DatePart::Minute,
    };
    Some(Expression::DatePart { part, unit, value, is_float })
}
