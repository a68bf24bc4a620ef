//! Comparison operators, which the analyzer replaces by DataFusion's own, and the comparison keys of intervals and
//! jsonb.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Decimal128Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use types::{Interval, SqlError, SqlResult, SqlType};

use super::call::Call;
use super::definition::{Definition, Gives, Overload, Takes};
use super::json;

const ANY_TWO: &[Overload] = &[Overload::rows(&[Takes::Any, Takes::Any], Gives::of(SqlType::Bool), unresolved)];

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new("=", ANY_TWO),
    Definition::new("<>", ANY_TWO),
    Definition::new("<", ANY_TWO),
    Definition::new("<=", ANY_TWO),
    Definition::new(">", ANY_TWO),
    Definition::new(">=", ANY_TWO),
];

/// Comparison key of intervals: their length in microseconds, with months of 30 days.
pub(super) static INTERVAL_SPAN: Definition = Definition::new(
    "interval_span",
    &[Overload::rows(&[Takes::Interval], Gives::of(SqlType::Numeric { precision: 38, scale: 0 }), span)],
);

/// Comparison key of jsonb: bytes in PostgreSQL's order.
pub(super) static JSONB_KEY: Definition =
    Definition::new("jsonb_key", &[Overload::rows(&[Takes::Jsonb], Gives::of(SqlType::Bytea), json::key)]);

const INTERVAL: Gives = Gives::of(SqlType::Interval);

/// Definition of GREATEST for intervals.
pub(super) static LONGEST: Definition =
    Definition::new("greatest", &[Overload::rows(&[Takes::Interval], INTERVAL, |call| extreme(call, true)).variadic()]);

/// Definition of LEAST for intervals.
pub(super) static SHORTEST: Definition =
    Definition::new("least", &[Overload::rows(&[Takes::Interval], INTERVAL, |call| extreme(call, false)).variadic()]);

/// Definition of `interval = ANY (array)`.
pub(super) static ANY_OF_LENGTH: Definition = Definition::new(
    "any_equal",
    &[Overload::rows(&[Takes::AnyArray, Takes::Interval], Gives::of(SqlType::Bool), any_of_length)],
);

fn length(span: IntervalMonthDayNano) -> i128 {
    Interval::from_month_day_nano(span.months, span.days, span.nanoseconds).span_us()
}

/// Returns the longest or shortest interval. NULLs are ignored; the first of several equal ones wins.
fn extreme(call: &Call<'_>, longest: bool) -> SqlResult<ArrayRef> {
    let columns: Vec<_> = (0..call.count()).map(|at| call.column::<IntervalMonthDayNanoType>(at)).collect();
    call.primitive::<IntervalMonthDayNanoType>(|row| {
        Ok(columns.iter().filter_map(|column| column.get(row)).reduce(|best, other| {
            let (kept, new) = (length(best), length(other));
            if if longest { kept < new } else { new < kept } { other } else { best }
        }))
    })
}

/// Evaluates `interval = ANY (array)`: true if an element has the same length; NULL if none has but an element or the
/// value is NULL.
fn any_of_length(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let wanted = call.column::<IntervalMonthDayNanoType>(1);
    call.booleans(|row| {
        let Some(list) = call.list(0, row) else { return Ok(None) };
        if list.is_empty() {
            return Ok(Some(false));
        }
        let Some(wanted) = wanted.get(row).map(length) else { return Ok(None) };
        let found = list.as_primitive::<IntervalMonthDayNanoType>().iter().flatten().any(|span| length(span) == wanted);
        if found { Ok(Some(true)) } else { Ok((list.null_count() == 0).then_some(false)) }
    })
}

fn span(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let spans = call.column::<IntervalMonthDayNanoType>(0);
    call.primitive::<Decimal128Type>(|row| Ok(spans.get(row).map(length)))
}

fn unresolved(_call: &Call<'_>) -> SqlResult<ArrayRef> {
    Err(SqlError::internal("a comparison operator ran before the analyzer replaced it"))
}
