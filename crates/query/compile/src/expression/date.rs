//! Compiles date and timestamp functions.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use engine::expression::{Expression, TimeUnit};
use functions::{part_call, shift_call};
use types::Interval;

use super::lower_part;
use super::text::literal;

/// Compiles a call of a date or timestamp function.
pub(super) fn call(call: &ScalarFunctionExpr, schema: &Schema) -> Option<Expression> {
    let [first, second] = call.args() else { return None };
    if let Some(shift) = shift_call(call.fun()) {
        let (by, value) = if shift.interval == 0 { (first, second) } else { (second, first) };
        let by = interval(by)?;
        let by = if shift.is_back { by.checked_neg().ok()? } else { by };
        let unit = unit(shift.is_moment);
        let value = if is_of(value, unit, schema) { Box::new(lower_part(value, schema)?) } else { return None };
        return Some(Expression::Later { value, unit, by });
    }
    let part = part_call(call.fun(), literal(first)?)?;
    let value = Box::new(lower_part(second, schema)?);
    Some(Expression::DatePart { part: part.part, unit: unit(part.is_moment), value, is_float: part.is_float })
}

fn unit(is_moment: bool) -> TimeUnit {
    if is_moment { TimeUnit::Microseconds } else { TimeUnit::Days }
}

/// Returns whether an expression has this time unit; an untyped NULL has none.
fn is_of(value: &Arc<dyn PhysicalExpr>, unit: TimeUnit, schema: &Schema) -> bool {
    match value.data_type(schema) {
        Ok(DataType::Date32) => unit == TimeUnit::Days,
        Ok(DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None)) => unit == TimeUnit::Microseconds,
        _ => false,
    }
}

/// Returns a literal interval.
fn interval(expression: &Arc<dyn PhysicalExpr>) -> Option<Interval> {
    match expression.downcast_ref::<Literal>()?.value() {
        ScalarValue::IntervalMonthDayNano(Some(by)) => {
            Some(Interval::from_month_day_nano(by.months, by.days, by.nanoseconds))
        }
        _ => None,
    }
}
