//! Lists of `generate_series` values, numbers or timestamps, which `rewrite` unnests.
//!
//! Most series never become lists: the operator `ProjectSetExec` reads the values of a [`SeriesIter`]. The rest are parts
//! of larger expressions.

mod series_iter;

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{
    DataType, Decimal128Type, Int32Type, Int64Type, IntervalMonthDayNanoType, TimestampMicrosecondType,
};
use datafusion::logical_expr::Volatility;
use types::numeric::{self, NumericPrecision};
use types::{Condition, SqlError, SqlResult, SqlType, ValueMemoryCounter};

pub use self::series_iter::{SeriesIter, SeriesType};
use super::arithmetic::interval_from_arrow;
use super::call::Call;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};

/// Name of the function that returns the list; `rewrite` calls it for `generate_series`.
pub const SERIES_FUNCTION: &str = "generate_series_list";

/// Name of the function that returns the subscripts of an array; `rewrite` calls it for `generate_subscripts`.
pub const SUBSCRIPTS_FUNCTION: &str = "generate_subscripts_list";

/// Limit on the elements of a list; a longer series is rejected with SQLSTATE 54000.
const ELEMENT_COUNT_MAX: usize = 10_000_000;

/// Number of values generated between two checks of the memory limit.
const CHECK_INTERVAL: usize = 8192;

const LIST: ResultType = ResultType::Computed(|types| {
    // The element type has the largest scale among the arguments.
    let digits = types.iter().filter_map(NumericPrecision::from_sql_type).reduce(NumericPrecision::common_type);
    let element = match (&types[0], digits) {
        (SqlType::Numeric { .. }, Some(digits)) => digits.sql_type(),
        (first, _) => first.clone(),
    };
    Ok(SqlType::Array(Box::new(element)))
});

pub(super) const DEFINITIONS: &[Definition] = &[Definition {
    name: SERIES_FUNCTION,
    description: "values of a series; written generate_series(...)",
    // Stable, to keep it from being folded into a constant.
    volatility: Volatility::Stable,
    catalog: &[],
    overloads: &[
        Overload::rows(&[T::Int4, T::Int4], LIST, F::SomeValues, numbers::<Int32Type>),
        Overload::rows(&[T::Int4, T::Int4, T::Int4], LIST, F::SomeValues, numbers::<Int32Type>),
        Overload::rows(&[T::Int8, T::Int8], LIST, F::SomeValues, numbers::<Int64Type>),
        Overload::rows(&[T::Int8, T::Int8, T::Int8], LIST, F::SomeValues, numbers::<Int64Type>),
        Overload::rows(&[T::Numeric, T::Numeric], LIST, F::SomeValues, numerics),
        Overload::rows(&[T::Numeric, T::Numeric, T::Numeric], LIST, F::SomeValues, numerics),
        Overload::rows(&[T::Timestamp, T::Timestamp, T::Interval], LIST, F::SomeValues, times),
        Overload::rows(&[T::TimestampTz, T::TimestampTz, T::Interval], LIST, F::SomeValues, times),
    ],
}];

fn numbers<N>(call: &Call<'_>) -> SqlResult<ArrayRef>
where
    N: ArrowPrimitiveType,
    N::Native: Into<i128> + TryFrom<i128>,
{
    let (first, last) = (call.column::<N>(0), call.column::<N>(1));
    lists::<N>(call, |row| {
        let step = if call.argument_count() == 3 { call.column::<N>(2).get(row).map(Into::into) } else { Some(1) };
        let (Some(first), Some(last), Some(step)) = (first.get(row), last.get(row), step) else { return Ok(None) };
        SeriesIter::numbers(first.into(), last.into(), step).map(Some)
    })
}

fn numerics(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let scale = match call.result_type {
        SqlType::Array(element) => super::call::scale_of(element),
        _ => return Err(SqlError::internal("generate_series: the SQL type of the result is not an array")),
    };
    let value = |at: usize, row: usize| {
        let digits = call.column::<Decimal128Type>(at).get(row)?;
        numeric::rescale(digits, call.scale(at), scale)
    };
    lists::<Decimal128Type>(call, |row| {
        let step = if call.argument_count() == 3 { value(2, row) } else { Some(numeric::power_of_ten(scale)) };
        let (Some(first), Some(last), Some(step)) = (value(0, row), value(1, row), step) else { return Ok(None) };
        SeriesIter::numbers(first, last, step).map(Some)
    })
}

fn times(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (first, last) = (call.column::<TimestampMicrosecondType>(0), call.column::<TimestampMicrosecondType>(1));
    let step = call.column::<IntervalMonthDayNanoType>(2);
    let zone = (call.argument_types[0] == SqlType::TimestampTz).then_some(call.session.zone);
    lists::<TimestampMicrosecondType>(call, |row| {
        let (Some(first), Some(last), Some(step)) = (first.get(row), last.get(row), step.get(row)) else {
            return Ok(None);
        };
        SeriesIter::times(first, last, interval_from_arrow(step), zone).map(Some)
    })
}

fn lists<N>(call: &Call<'_>, series: impl Fn(usize) -> SqlResult<Option<SeriesIter>>) -> SqlResult<ArrayRef>
where
    N: ArrowPrimitiveType,
    N::Native: TryFrom<i128>,
{
    let mut values: Vec<i128> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows);
    let (mut validity, mut guard) = (Vec::with_capacity(call.rows), ValueMemoryCounter::default());
    for row in 0..call.rows {
        let mut walk = series(row)?;
        validity.push(walk.is_some());
        let before = values.len();
        while let Some(walk) = &mut walk {
            let had = values.len();
            walk.fill(CHECK_INTERVAL, &mut values)?;
            if values.len() == had {
                break;
            }
            guard.add((values.len() - had) * size_of::<i128>())?;
            if ELEMENT_COUNT_MAX < values.len() {
                let message = format!("generate_series of more than {ELEMENT_COUNT_MAX} values is not supported here");
                return Err(SqlError::new(Condition::ProgramLimitExceeded, message));
            }
        }
        lengths.push(values.len() - before);
    }
    let DataType::List(item) = call.result_type.arrow_type() else {
        return Err(SqlError::internal("generate_series: the Arrow type of the result is not a list"));
    };
    let values =
        PrimitiveArray::<N>::from_iter_values(values.into_iter().filter_map(|it| N::Native::try_from(it).ok()));
    let values = values.with_data_type(item.data_type().clone());
    let list = ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(values), Some(validity.into()));
    Ok(Arc::new(list))
}
