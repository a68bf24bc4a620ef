//! The comparison operators by name. The analyzer turns them into DataFusion's own, so they have no bodies.

use arrow::array::ArrayRef;
use arrow::datatypes::{Decimal128Type, IntervalMonthDayNanoType};
use types::{Interval, SqlError, SqlResult, SqlType};

use super::call::Call;
use super::definition::{Definition, Gives, Overload, Takes};

const ANY_TWO: &[Overload] = &[Overload::rows(&[Takes::Any, Takes::Any], Gives::of(SqlType::Bool), unresolved)];

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new("=", ANY_TWO),
    Definition::new("<>", ANY_TWO),
    Definition::new("<", ANY_TWO),
    Definition::new("<=", ANY_TWO),
    Definition::new(">", ANY_TWO),
    Definition::new(">=", ANY_TWO),
];

/// An interval's length in microseconds, with months of 30 days: what comparisons, sorts and groups of intervals go by.
pub(super) static INTERVAL_SPAN: Definition = Definition::new(
    "interval_span",
    &[Overload::rows(&[Takes::Interval], Gives::of(SqlType::Numeric { precision: 38, scale: 0 }), span)],
);

fn span(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let spans = call.column::<IntervalMonthDayNanoType>(0);
    call.primitive::<Decimal128Type>(|row| {
        Ok(spans.get(row).map(|span| Interval::from_month_day_nano(span.months, span.days, span.nanoseconds).span_us()))
    })
}

fn unresolved(_call: &Call<'_>) -> SqlResult<ArrayRef> {
    Err(SqlError::internal("a comparison was run before its types were resolved"))
}
