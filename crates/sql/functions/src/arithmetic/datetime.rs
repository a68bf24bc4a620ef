//! Arithmetic of dates, times, timestamps and intervals.

use arrow::array::ArrayRef;
use arrow::datatypes::{
    Date32Type, Float64Type, Int32Type, IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use types::text::{DATE_DAYS_MAX, DATE_DAYS_MIN, TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY};
use types::{Condition, Interval, SqlError, SqlResult};

use super::elementwise::{try_map, try_zip};
use crate::call::Call;

type DateArrowType = Date32Type;
type IntervalArrowType = IntervalMonthDayNanoType;
type TimestampArrowType = TimestampMicrosecondType;
type TimeArrowType = Time64MicrosecondType;

/// Converts an interval from its Arrow form.
pub(crate) fn interval_from_arrow(value: IntervalMonthDayNano) -> Interval {
    Interval::from_month_day_nano(value.months, value.days, value.nanoseconds)
}

/// Converts an interval to its Arrow form.
pub(crate) fn interval_to_arrow(value: Interval) -> SqlResult<IntervalMonthDayNano> {
    let (months, days, nanoseconds) = value.to_month_day_nano()?;
    Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
}

fn date(days: i64) -> SqlResult<i32> {
    i32::try_from(days)
        .ok()
        .filter(|days| (DATE_DAYS_MIN..=DATE_DAYS_MAX).contains(days))
        .ok_or_else(|| SqlError::new(Condition::DatetimeFieldOverflow, "date out of range"))
}

fn timestamp(us: i64) -> SqlResult<i64> {
    if (TIMESTAMP_US_MIN..=TIMESTAMP_US_MAX).contains(&us) {
        Ok(us)
    } else {
        Err(SqlError::new(Condition::DatetimeFieldOverflow, "timestamp out of range"))
    }
}

fn midnight(days: i32) -> i64 {
    i64::from(days) * US_PER_DAY
}

pub(super) fn date_plus_days(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<DateArrowType, Int32Type, DateArrowType>(call, |a, b| date(i64::from(a) + i64::from(b)))
}

pub(super) fn days_plus_date(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Int32Type, DateArrowType, DateArrowType>(call, |a, b| date(i64::from(a) + i64::from(b)))
}

pub(super) fn date_minus_days(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<DateArrowType, Int32Type, DateArrowType>(call, |a, b| date(i64::from(a) - i64::from(b)))
}

pub(super) fn date_minus_date(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<DateArrowType, DateArrowType, Int32Type>(call, |a, b| Ok(a.wrapping_sub(b)))
}

pub(super) fn date_plus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<DateArrowType, IntervalArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(b).add_to_timestamp(midnight(a))
    })
}

pub(super) fn plus_date(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<IntervalArrowType, DateArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(a).add_to_timestamp(midnight(b))
    })
}

pub(super) fn date_minus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<DateArrowType, IntervalArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(b).checked_neg()?.add_to_timestamp(midnight(a))
    })
}

pub(super) fn date_plus_time(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<DateArrowType, TimeArrowType, TimestampArrowType>(call, |a, b| timestamp(midnight(a) + b))
}

pub(super) fn time_plus_date(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<TimeArrowType, DateArrowType, TimestampArrowType>(call, |a, b| timestamp(midnight(b) + a))
}

pub(super) fn timestamp_plus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<TimestampArrowType, IntervalArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(b).add_to_timestamp(a)
    })
}

pub(super) fn plus_timestamp(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<IntervalArrowType, TimestampArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(a).add_to_timestamp(b)
    })
}

pub(super) fn timestamp_minus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<TimestampArrowType, IntervalArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(b).checked_neg()?.add_to_timestamp(a)
    })
}

pub(super) fn timestamptz_plus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let zone = call.session.zone;
    try_zip::<TimestampArrowType, IntervalArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(b).add_to_timestamptz(a, &zone)
    })
}

pub(super) fn plus_timestamptz(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let zone = call.session.zone;
    try_zip::<IntervalArrowType, TimestampArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(a).add_to_timestamptz(b, &zone)
    })
}

pub(super) fn timestamptz_minus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let zone = call.session.zone;
    try_zip::<TimestampArrowType, IntervalArrowType, TimestampArrowType>(call, |a, b| {
        interval_from_arrow(b).checked_neg()?.add_to_timestamptz(a, &zone)
    })
}

/// Subtracts timestamps; the result has days and a time below one day.
pub(super) fn timestamp_minus_timestamp(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<TimestampArrowType, TimestampArrowType, IntervalArrowType>(call, |a, b| {
        let difference =
            a.checked_sub(b).ok_or_else(|| SqlError::new(Condition::DatetimeFieldOverflow, "interval out of range"))?;
        interval_to_arrow(Interval::new(0, 0, difference).justify_hours()?)
    })
}

pub(super) fn time_minus_time(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<TimeArrowType, TimeArrowType, IntervalArrowType>(call, |a, b| {
        interval_to_arrow(Interval::new(0, 0, a - b))
    })
}

/// Adds an interval to a time, which wraps at midnight; months and days are ignored.
pub(super) fn time_plus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<TimeArrowType, IntervalArrowType, TimeArrowType>(call, |a, b| {
        Ok(a.wrapping_add(interval_from_arrow(b).microseconds).rem_euclid(US_PER_DAY))
    })
}

pub(super) fn plus_time(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<IntervalArrowType, TimeArrowType, TimeArrowType>(call, |a, b| {
        Ok(b.wrapping_add(interval_from_arrow(a).microseconds).rem_euclid(US_PER_DAY))
    })
}

pub(super) fn time_minus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<TimeArrowType, IntervalArrowType, TimeArrowType>(call, |a, b| {
        Ok(a.wrapping_sub(interval_from_arrow(b).microseconds).rem_euclid(US_PER_DAY))
    })
}

pub(super) fn interval_plus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<IntervalArrowType, IntervalArrowType, IntervalArrowType>(call, |a, b| {
        interval_to_arrow(interval_from_arrow(a).checked_add(interval_from_arrow(b))?)
    })
}

pub(super) fn interval_minus(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<IntervalArrowType, IntervalArrowType, IntervalArrowType>(call, |a, b| {
        interval_to_arrow(interval_from_arrow(a).checked_sub(interval_from_arrow(b))?)
    })
}

pub(super) fn interval_times(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<IntervalArrowType, Float64Type, IntervalArrowType>(call, |a, b| {
        interval_to_arrow(interval_from_arrow(a).multiply(b)?)
    })
}

pub(super) fn times_interval(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<Float64Type, IntervalArrowType, IntervalArrowType>(call, |a, b| {
        interval_to_arrow(interval_from_arrow(b).multiply(a)?)
    })
}

pub(super) fn interval_divided(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_zip::<IntervalArrowType, Float64Type, IntervalArrowType>(call, |a, b| {
        interval_to_arrow(interval_from_arrow(a).divide(b)?)
    })
}

pub(super) fn negate(call: &Call<'_>) -> SqlResult<ArrayRef> {
    try_map::<IntervalArrowType, IntervalArrowType>(call, |a| interval_to_arrow(interval_from_arrow(a).checked_neg()?))
}
