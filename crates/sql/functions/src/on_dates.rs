//! Describes date and timestamp functions that the vectorized engine evaluates with its own kernels.

use datafusion::logical_expr::ScalarUDF;
use types::{DatePart, SqlType};

use super::datetime::Field;
use super::function::ResolvedFunction;

/// Call of EXTRACT or `date_part` on a date or a timestamp without time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartCall {
    /// Extracted field; hours and minutes are supported for timestamps only.
    pub part: DatePart,
    /// True if the argument is a `timestamp`, false if it is a `date`.
    pub is_moment: bool,
    /// True if the result is `float8` (`date_part`), false if it is a numeric of scale 0 (EXTRACT).
    pub is_float: bool,
}

/// Returns the extraction that a function performs if its first argument is the field name `name`; `None` for other
/// functions, types and fields.
#[must_use]
pub fn part_call(function: &ScalarUDF, name: &str) -> Option<PartCall> {
    let call = function.inner().downcast_ref::<ResolvedFunction>()?;
    let is_float = match call.name() {
        "extract_0" => false,
        "date_part" => true,
        _ => return None,
    };
    let is_moment = match call.takes() {
        [_, SqlType::Date] => false,
        [_, SqlType::Timestamp] => true,
        _ => return None,
    };
    let part = match Field::named(name)? {
        Field::Year => DatePart::Year,
        Field::Quarter => DatePart::Quarter,
        Field::Month => DatePart::Month,
        Field::Day => DatePart::Day,
        Field::DayOfWeek => DatePart::DayOfWeek,
        Field::IsoDayOfWeek => DatePart::IsoDayOfWeek,
        Field::DayOfYear => DatePart::DayOfYear,
        Field::Hour if is_moment => DatePart::Hour,
        Field::Minute if is_moment => DatePart::Minute,
        _ => return None,
    };
    Some(PartCall { part, is_moment, is_float })
}

/// Addition or subtraction of an interval and a date or timestamp without time zone; the result is a `timestamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShiftCall {
    /// True if the other operand is a `timestamp`, false if it is a `date`.
    pub is_moment: bool,
    /// True if the interval is subtracted.
    pub is_back: bool,
    /// Position of the interval among the two arguments.
    pub interval: usize,
}

/// Returns the interval addition that a function performs; `None` for other functions.
#[must_use]
pub fn shift_call(function: &ScalarUDF) -> Option<ShiftCall> {
    let call = function.inner().downcast_ref::<ResolvedFunction>()?;
    let is_back = match call.name() {
        "+" => false,
        "-" => true,
        _ => return None,
    };
    let (of, interval) = match call.takes() {
        [of, SqlType::Interval] => (of, 1),
        [SqlType::Interval, of] if !is_back => (of, 0),
        _ => return None,
    };
    let is_moment = match of {
        SqlType::Date => false,
        SqlType::Timestamp => true,
        _ => return None,
    };
    Some(ShiftCall { is_moment, is_back, interval })
}
