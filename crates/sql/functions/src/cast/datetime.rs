//! Casts between dates, times, timestamps and intervals; values without a time zone are in the session's zone.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    Date32Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use session_context::EvaluationContext;
use types::text::US_PER_DAY;
use types::{SqlResult, SqlType};

use super::missing_cast;

pub(super) fn convert(
    values: &ArrayRef,
    from: &SqlType,
    to: &SqlType,
    session: &EvaluationContext,
) -> SqlResult<ArrayRef> {
    use SqlType as T;
    let zone = session.zone;
    let day = |us: i64| i32::try_from(us.div_euclid(US_PER_DAY)).expect("64-bit microseconds span 32-bit days");
    match (from, to) {
        (T::Date, T::Timestamp) => {
            map::<Date32Type, TimestampMicrosecondType>(values, to, |days| i64::from(days) * US_PER_DAY)
        }
        (T::Date, T::TimestampTz) => map::<Date32Type, TimestampMicrosecondType>(values, to, |days| {
            zone.to_universal(i64::from(days) * US_PER_DAY)
        }),
        (T::Timestamp, T::Date) => map::<TimestampMicrosecondType, Date32Type>(values, to, day),
        (T::TimestampTz, T::Date) => {
            map::<TimestampMicrosecondType, Date32Type>(values, to, |us| day(zone.to_local(us)))
        }
        (T::Timestamp, T::Time) => {
            map::<TimestampMicrosecondType, Time64MicrosecondType>(values, to, |us| us.rem_euclid(US_PER_DAY))
        }
        (T::TimestampTz, T::Time) => map::<TimestampMicrosecondType, Time64MicrosecondType>(values, to, |us| {
            zone.to_local(us).rem_euclid(US_PER_DAY)
        }),
        (T::Timestamp, T::TimestampTz) => {
            map::<TimestampMicrosecondType, TimestampMicrosecondType>(values, to, |us| zone.to_universal(us))
        }
        (T::TimestampTz, T::Timestamp) => {
            map::<TimestampMicrosecondType, TimestampMicrosecondType>(values, to, |us| zone.to_local(us))
        }
        (T::Time, T::Interval) => map::<Time64MicrosecondType, IntervalMonthDayNanoType>(values, to, |us| {
            IntervalMonthDayNano::new(0, 0, us * 1000)
        }),
        (T::Interval, T::Time) => map::<IntervalMonthDayNanoType, Time64MicrosecondType>(values, to, |span| {
            (span.nanoseconds / 1000).rem_euclid(US_PER_DAY)
        }),
        _ => Err(missing_cast(from, to)),
    }
}

fn map<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    values: &ArrayRef,
    to: &SqlType,
    convert: impl Fn(A::Native) -> B::Native,
) -> SqlResult<ArrayRef> {
    let converted: PrimitiveArray<B> = values.as_primitive::<A>().unary(convert);
    Ok(Arc::new(converted.with_data_type(to.arrow_type())))
}
