//! Comparison operators, which the analyzer replaces by DataFusion's own, and the comparison keys of intervals and
//! jsonb.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Decimal128Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use types::{Interval, SqlError, SqlResult, SqlType};

use super::call::Call;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType, ResultType};
use super::json;

const ANY_TWO: &[Overload] = &[Overload::rows(
    &[ParameterType::Any, ParameterType::Any],
    ResultType::fixed(SqlType::Bool),
    F::Nothing,
    unresolved,
)];

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new("=", "equal", ANY_TWO),
    Definition::new("<>", "not equal", ANY_TWO),
    Definition::new("<", "less than", ANY_TWO),
    Definition::new("<=", "less than or equal", ANY_TWO),
    Definition::new(">", "greater than", ANY_TWO),
    Definition::new(">=", "greater than or equal", ANY_TWO),
];

/// Comparison key of intervals: their length in microseconds, with months of 30 days.
pub(super) static INTERVAL_SPAN: Definition = Definition::new(
    "interval_span",
    "length of an interval, by which intervals compare",
    &[Overload::rows(
        &[ParameterType::Interval],
        ResultType::fixed(SqlType::Numeric { precision: 38, scale: 0 }),
        F::Nothing,
        span,
    )],
);

/// Comparison key of jsonb: bytes in PostgreSQL's order.
pub(super) static JSONB_KEY: Definition = Definition::new(
    "jsonb_key",
    "bytes by which JSON values compare",
    &[Overload::rows(&[ParameterType::Jsonb], ResultType::fixed(SqlType::Bytea), F::Nothing, json::comparison_key)],
);

const INTERVAL: ResultType = ResultType::fixed(SqlType::Interval);

/// Definition of GREATEST for intervals.
pub(super) static GREATEST_INTERVAL: Definition = Definition::new(
    "greatest",
    "greatest of the arguments",
    &[Overload::rows(&[ParameterType::Interval], INTERVAL, F::Nothing, |call| extreme(call, true)).variadic()],
);

/// Definition of LEAST for intervals.
pub(super) static LEAST_INTERVAL: Definition = Definition::new(
    "least",
    "least of the arguments",
    &[Overload::rows(&[ParameterType::Interval], INTERVAL, F::Nothing, |call| extreme(call, false)).variadic()],
);

/// Definition of `interval = ANY (array)`.
pub(super) static ANY_EQUAL_INTERVAL: Definition = Definition::new(
    "any_equal",
    "equals an element of an array; written x = ANY (a)",
    &[Overload::rows(
        &[ParameterType::AnyArray, ParameterType::Interval],
        ResultType::fixed(SqlType::Bool),
        F::Nothing,
        any_equal_interval,
    )],
);

fn length(span: IntervalMonthDayNano) -> i128 {
    Interval::from_month_day_nano(span.months, span.days, span.nanoseconds).span_us()
}

/// Returns the longest or shortest interval. NULLs are ignored; the first of several equal ones wins.
fn extreme(call: &Call<'_>, longest: bool) -> SqlResult<ArrayRef> {
    let columns: Vec<_> = (0..call.argument_count()).map(|at| call.column::<IntervalMonthDayNanoType>(at)).collect();
    call.build_primitive::<IntervalMonthDayNanoType>(|row| {
        Ok(columns.iter().filter_map(|column| column.get(row)).reduce(|best, other| {
            let (kept, new) = (length(best), length(other));
            if if longest { kept < new } else { new < kept } { other } else { best }
        }))
    })
}

/// Evaluates `interval = ANY (array)`: true if an element has the same length; NULL if none has but an element or the
/// value is NULL.
fn any_equal_interval(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let wanted = call.column::<IntervalMonthDayNanoType>(1);
    call.build_booleans(|row| {
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
    call.build_primitive::<Decimal128Type>(|row| Ok(spans.get(row).map(length)))
}

fn unresolved(_call: &Call<'_>) -> SqlResult<ArrayRef> {
    Err(SqlError::internal("a comparison operator ran before the analyzer replaced it"))
}
