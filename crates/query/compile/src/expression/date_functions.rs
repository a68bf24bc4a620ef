//! Compiles date and timestamp functions.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use engine::expression::{Expression, TimeUnit};
use functions::{extract_kernel, interval_addition_kernel};
use types::Interval;

use super::lower_part;
use super::text_functions::literal;

/// Compiles a call of a date or timestamp function.
pub(super) fn call(call: &ScalarFunctionExpr, schema: &Schema) -> Option<Expression> {
    let [first, second] = call.args() else { return None };
    if let Some(shift) = interval_addition_kernel(call.fun()) {
        let (by, value) = if shift.interval_position == 0 { (first, second) } else { (second, first) };
        let by = interval(by)?;
        let by = if shift.is_subtraction { by.checked_neg().ok()? } else { by };
        let unit = unit(shift.is_timestamp);
        let value = if has_unit(value, unit, schema) { Box::new(lower_part(value, schema)?) } else { return None };
        return Some(Expression::AddInterval { value, unit, interval: by });
    }
    let part = extract_kernel(call.fun(), literal(first)?)?;
    let value = Box::new(lower_part(second, schema)?);
    Some(Expression::DatePart { part: part.part, unit: unit(part.is_timestamp), value, is_float: part.is_float })
}

fn unit(is_moment: bool) -> TimeUnit {
    if is_moment { TimeUnit::Microseconds } else { TimeUnit::Days }
}

/// Returns whether an expression has this time unit; an untyped NULL has none.
fn has_unit(value: &Arc<dyn PhysicalExpr>, unit: TimeUnit, schema: &Schema) -> bool {
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
