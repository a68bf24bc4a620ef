//! Construction of dates, times, timestamps and intervals from numbers.

use arrow::array::ArrayRef;
use arrow::datatypes::{
    Date32Type, Float64Type, Int32Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use types::text::{TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY, days_from_civil, days_in_month, format_float8};
use types::{Condition, Interval, SessionZone, SqlError, SqlResult};

use crate::arithmetic;
use crate::call::Call;

fn out_of_range(what: &str, value: &str) -> SqlError {
    SqlError::new(Condition::DatetimeFieldOverflow, format!("{what} field value out of range: {value}"))
}

fn day(year: i32, month: i32, day: i32) -> SqlResult<i32> {
    let error = || out_of_range("date", &format!("{year}-{month:02}-{day:02}"));
    let month_number = u32::try_from(month).ok().filter(|month| (1..=12).contains(month)).ok_or_else(error)?;
    let day_number = u32::try_from(day)
        .ok()
        .filter(|day| 1 <= *day && *day <= days_in_month(year, month_number))
        .ok_or_else(error)?;
    if !(1..=9999).contains(&year) {
        return Err(error());
    }
    Ok(days_from_civil(year, month_number, day_number))
}

#[expect(clippy::cast_possible_truncation, reason = "seconds lie between 0 and 60")]
fn time_of_day(hour: i32, minute: i32, second: f64) -> SqlResult<i64> {
    let out_of_range = || out_of_range("time", &format!("{hour}:{minute:02}:{second:02}"));
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..=60.0).contains(&second) {
        return Err(out_of_range());
    }
    let us = (i64::from(hour) * 60 + i64::from(minute)) * 60_000_000 + (second * 1e6).round_ties_even() as i64;
    if us <= US_PER_DAY { Ok(us) } else { Err(out_of_range()) }
}

fn int_argument(call: &Call<'_>, index: usize, row: usize) -> Option<i32> {
    call.column::<Int32Type>(index).get(row)
}

pub(super) fn date(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<Date32Type>(|row| {
        match (int_argument(call, 0, row), int_argument(call, 1, row), int_argument(call, 2, row)) {
            (Some(year), Some(month), Some(number)) => day(year, month, number).map(Some),
            _ => Ok(None),
        }
    })
}

pub(super) fn time(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let seconds = call.column::<Float64Type>(2);
    call.build_primitive::<Time64MicrosecondType>(|row| {
        match (int_argument(call, 0, row), int_argument(call, 1, row), seconds.get(row)) {
            (Some(hour), Some(minute), Some(second)) => time_of_day(hour, minute, second).map(Some),
            _ => Ok(None),
        }
    })
}

fn local_timestamp(call: &Call<'_>, row: usize) -> SqlResult<Option<i64>> {
    let [year, month, number, hour, minute] = [0, 1, 2, 3, 4].map(|index| int_argument(call, index, row));
    let (Some(year), Some(month), Some(number), Some(hour), Some(minute), Some(second)) =
        (year, month, number, hour, minute, call.column::<Float64Type>(5).get(row))
    else {
        return Ok(None);
    };
    Ok(Some(i64::from(day(year, month, number)?) * US_PER_DAY + time_of_day(hour, minute, second)?))
}

pub(super) fn timestamp(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<TimestampMicrosecondType>(|row| local_timestamp(call, row))
}

pub(super) fn timestamptz(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let names = (call.argument_count() == 7).then(|| call.text(6));
    call.build_primitive::<TimestampMicrosecondType>(|row| {
        let name = names.as_ref().map(|names| names.get(row));
        if name == Some(None) {
            return Ok(None);
        }
        let Some(us) = local_timestamp(call, row)? else { return Ok(None) };
        let zone = match name.flatten() {
            Some(name) => SessionZone::parse_in_value(name)?,
            None => call.session.zone,
        };
        Ok(Some(zone.to_universal(us)))
    })
}

/// Evaluates `make_interval` of years, months, weeks, days, hours, minutes and seconds; absent ones are 0.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
pub(super) fn interval(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let error = || SqlError::new(Condition::DatetimeFieldOverflow, "interval out of range");
    call.build_primitive::<IntervalMonthDayNanoType>(|row| {
        let mut parts = [0_i64; 6];
        for (index, part) in parts.iter_mut().enumerate().take(call.argument_count().min(6)) {
            let Some(value) = int_argument(call, index, row) else { return Ok(None) };
            *part = value.into();
        }
        let second = if call.argument_count() == 7 {
            let Some(second) = call.column::<Float64Type>(6).get(row) else { return Ok(None) };
            (second * 1e6).round_ties_even()
        } else {
            0.0
        };
        if !second.is_finite() || 9.2e18 < second.abs() {
            return Err(error());
        }
        let [years, months, weeks, days, hours, minutes] = parts;
        let months = i32::try_from(years * 12 + months).map_err(|_| error())?;
        let days = i32::try_from(weeks * 7 + days).map_err(|_| error())?;
        let us = (hours * 60 + minutes)
            .checked_mul(60_000_000)
            .and_then(|us| us.checked_add(second as i64))
            .ok_or_else(error)?;
        arithmetic::interval_to_arrow(Interval::new(months, days, us)).map(Some)
    })
}

/// Evaluates `to_timestamp(float8)`.
pub(super) fn from_epoch(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let seconds = call.column::<Float64Type>(0);
    call.build_primitive::<TimestampMicrosecondType>(|row| seconds.get(row).map(micros_from_epoch_seconds).transpose())
}

/// Converts seconds since 1970 to microseconds.
///
/// # Errors
/// SQLSTATE 22008 out of range.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
pub(crate) fn micros_from_epoch_seconds(seconds: f64) -> SqlResult<i64> {
    let us = (seconds * 1e6).round_ties_even();
    if !us.is_finite() || 9e18 < us.abs() || !(TIMESTAMP_US_MIN..=TIMESTAMP_US_MAX).contains(&(us as i64)) {
        let mut shown = String::new();
        format_float8(seconds, &mut shown);
        return Err(SqlError::new(Condition::DatetimeFieldOverflow, format!("timestamp out of range: \"{shown}\"")));
    }
    Ok(us as i64)
}
