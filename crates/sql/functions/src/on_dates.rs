//! Calls over columns of dates and of moments: what engines need to know to make them without arrays.

use datafusion::logical_expr::ScalarUDF;
use types::{DatePart, SqlType};

use super::datetime::Field;
use super::function::ResolvedFunction;

/// The part that EXTRACT or `date_part` takes of its second argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartCall {
    /// The time of the day of moments alone.
    pub part: DatePart,
    /// Whether that is a moment without a zone, not a date.
    pub is_moment: bool,
    /// Whether it gives a `float8`, not a numeric without digits after the point.
    pub is_float: bool,
}

/// What the function takes of its second argument where its first one is `name`; `None` for all others.
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

/// An interval that is added to a date or to a moment without a zone, or taken from it; the result is such a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShiftCall {
    /// Whether it is added to a moment, not to a date.
    pub is_moment: bool,
    pub is_back: bool,
    /// Which argument the interval is.
    pub interval: usize,
}

/// What the function adds; `None` for all others.
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
