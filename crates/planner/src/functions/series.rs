//! `generate_series` as a list, which `rewrite` unnests: numbers, or times an interval apart.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Int32Type, Int64Type, IntervalMonthDayNanoType, TimestampMicrosecondType};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::arithmetic::interval;
use super::call::Call;
use super::definition::{Definition, Gives, Overload, Takes as T};

/// The name of the list: `rewrite` calls it for `generate_series`.
pub(crate) const SERIES: &str = "generate_series_list";

/// The most elements a list holds; a longer series is refused rather than made in memory.
const ELEMENT_COUNT_MAX: usize = 50_000_000;

const LIST: Gives = Gives::Computed(|types| Ok(SqlType::Array(Box::new(types[0].clone()))));

pub(super) const DEFINITIONS: &[Definition] = &[Definition::new(
    SERIES,
    &[
        Overload::rows(&[T::Int4, T::Int4], LIST, numbers::<Int32Type>),
        Overload::rows(&[T::Int4, T::Int4, T::Int4], LIST, numbers::<Int32Type>),
        Overload::rows(&[T::Int8, T::Int8], LIST, numbers::<Int64Type>),
        Overload::rows(&[T::Int8, T::Int8, T::Int8], LIST, numbers::<Int64Type>),
        Overload::rows(&[T::Timestamp, T::Timestamp, T::Interval], LIST, times),
        Overload::rows(&[T::TimestampTz, T::TimestampTz, T::Interval], LIST, times),
    ],
)];

fn numbers<N>(call: &Call<'_>) -> SqlResult<ArrayRef>
where
    N: ArrowPrimitiveType,
    N::Native: Into<i64> + TryFrom<i64>,
{
    let (first, last) = (call.column::<N>(0), call.column::<N>(1));
    lists::<N>(call, |row| {
        let step = if call.count() == 3 { call.column::<N>(2).get(row).map(Into::into) } else { Some(1_i64) };
        let (Some(first), Some(last), Some(step)) = (first.get(row), last.get(row), step) else { return Ok(None) };
        let last: i64 = last.into();
        let next = move |value: i64| Ok(value.checked_add(step));
        Ok(Some(walk(first.into(), last, step.signum(), next)?))
    })
}

fn times(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (first, last) = (call.column::<TimestampMicrosecondType>(0), call.column::<TimestampMicrosecondType>(1));
    let step = call.column::<IntervalMonthDayNanoType>(2);
    let zone = call.session.zone;
    let zoned = call.types[0] == SqlType::TimestampTz;
    lists::<TimestampMicrosecondType>(call, |row| {
        let (Some(first), Some(last), Some(step)) = (first.get(row), last.get(row), step.get(row)) else {
            return Ok(None);
        };
        let step = interval(step);
        let add = |from: i64| if zoned { step.add_to_timestamptz(from, &zone) } else { step.add_to_timestamp(from) };
        let direction = (add(first)? - first).signum();
        Ok(Some(walk(first, last, direction, |from| add(from).map(Some))?))
    })
}

/// The values from `first` on that do not pass `last`.
fn walk(
    first: i64,
    last: i64,
    direction: i64,
    mut next: impl FnMut(i64) -> SqlResult<Option<i64>>,
) -> SqlResult<Vec<i64>> {
    if direction == 0 {
        return Err(SqlError::new(Condition::InvalidParameterValue, "step size cannot equal zero"));
    }
    let mut values = Vec::new();
    let mut value = first;
    while if direction > 0 { value <= last } else { value >= last } {
        if values.len() == ELEMENT_COUNT_MAX {
            let message = format!("generate_series of more than {ELEMENT_COUNT_MAX} values is not supported");
            return Err(SqlError::new(Condition::ProgramLimitExceeded, message));
        }
        values.push(value);
        match next(value)? {
            Some(following) => value = following,
            None => break,
        }
    }
    Ok(values)
}

fn lists<N>(call: &Call<'_>, series: impl Fn(usize) -> SqlResult<Option<Vec<i64>>>) -> SqlResult<ArrayRef>
where
    N: ArrowPrimitiveType,
    N::Native: TryFrom<i64>,
{
    let mut values: Vec<N::Native> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows);
    let mut validity = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let found = series(row)?;
        validity.push(found.is_some());
        let found = found.unwrap_or_default();
        lengths.push(found.len());
        values.extend(found.into_iter().filter_map(|value| N::Native::try_from(value).ok()));
    }
    let DataType::List(item) = call.gives.arrow_type() else {
        return Err(SqlError::internal("an array type is a list"));
    };
    let values = PrimitiveArray::<N>::from_iter_values(values).with_data_type(item.data_type().clone());
    let list = ListArray::new(item, OffsetBuffer::from_lengths(lengths), Arc::new(values), Some(validity.into()));
    Ok(Arc::new(list))
}
