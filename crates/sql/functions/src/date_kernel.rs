//! Describes date and timestamp functions that the vectorized engine evaluates with its own kernels.

use datafusion::logical_expr::ScalarUDF;
use types::{DatePart, SqlType};

use super::datetime::DateField;
use super::scalar_udf::ResolvedFunction;

/// Call of EXTRACT or `date_part` on a date or a timestamp without time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractKernel {
    /// Extracted field; hours and minutes are supported for timestamps only.
    pub part: DatePart,
    /// True if the argument is a `timestamp`, false if it is a `date`.
    pub is_timestamp: bool,
    /// True if the result is `float8` (`date_part`), false if it is a numeric of scale 0 (EXTRACT).
    pub is_float: bool,
}

/// Returns the extraction that a function performs if its first argument is the field name `name`; `None` for other
/// functions, types and fields.
#[must_use]
pub fn extract_kernel(function: &ScalarUDF, name: &str) -> Option<ExtractKernel> {
    let call = function.inner().downcast_ref::<ResolvedFunction>()?;
    let is_float = match call.name() {
        "extract_0" => false,
        "date_part" => true,
        _ => return None,
    };
    let is_moment = match call.argument_types() {
        [_, SqlType::Date] => false,
        [_, SqlType::Timestamp] => true,
        _ => return None,
    };
    let part = match DateField::from_name(name)? {
        DateField::Year => DatePart::Year,
        DateField::Quarter => DatePart::Quarter,
        DateField::Month => DatePart::Month,
        DateField::Day => DatePart::Day,
        DateField::DayOfWeek => DatePart::DayOfWeek,
        DateField::IsoDayOfWeek => DatePart::IsoDayOfWeek,
        DateField::DayOfYear => DatePart::DayOfYear,
        DateField::Hour if is_moment => DatePart::Hour,
        DateField::Minute if is_moment => DatePart::Minute,
        _ => return None,
    };
    Some(ExtractKernel { part, is_timestamp: is_moment, is_float })
}

/// Addition or subtraction of an interval and a date or timestamp without time zone; the result is a `timestamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalAdditionKernel {
    /// True if the other operand is a `timestamp`, false if it is a `date`.
    pub is_timestamp: bool,
    /// True if the interval is subtracted.
    pub is_subtraction: bool,
    /// Position of the interval among the two arguments.
    pub interval_position: usize,
}

/// Returns the interval addition that a function performs; `None` for other functions.
#[must_use]
pub fn interval_addition_kernel(function: &ScalarUDF) -> Option<IntervalAdditionKernel> {
    let call = function.inner().downcast_ref::<ResolvedFunction>()?;
    let is_back = match call.name() {
        "+" => false,
        "-" => true,
        _ => return None,
    };
    let (of, interval) = match call.argument_types() {
        [of, SqlType::Interval] => (of, 1),
        [SqlType::Interval, of] if !is_back => (of, 0),
        _ => return None,
    };
    let is_moment = match of {
        SqlType::Date => false,
        SqlType::Timestamp => true,
        _ => return None,
    };
    Some(IntervalAdditionKernel { is_timestamp: is_moment, is_subtraction: is_back, interval_position: interval })
}
