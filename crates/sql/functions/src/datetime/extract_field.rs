//! EXTRACT and `date_part`: fields of dates, times and intervals, exact to the microsecond.

use arrow::array::ArrayRef;
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float64Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use types::text::{US_PER_DAY, civil_from_days, days_from_civil};
use types::{Condition, Interval, SessionZone, SqlError, SqlResult, SqlType};

use crate::arithmetic::interval_from_arrow;
use crate::call::{Call, scale_of};

/// Field of a date, time or interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateField {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Epoch,
    Julian,
    Zone,
    ZoneHour,
    ZoneMinute,
}

impl DateField {
    /// Parses a field name in any of PostgreSQL's spellings.
    pub(crate) fn from_name(name: &str) -> Option<DateField> {
        Some(match name.to_ascii_lowercase().as_str() {
            "millennium" | "millennia" | "mil" | "mils" => DateField::Millennium,
            "century" | "centuries" | "c" | "cent" => DateField::Century,
            "decade" | "decades" | "dec" | "decs" => DateField::Decade,
            "year" | "years" | "y" | "yr" | "yrs" => DateField::Year,
            "isoyear" => DateField::IsoYear,
            "quarter" | "qtr" => DateField::Quarter,
            "month" | "months" | "mon" | "mons" => DateField::Month,
            "week" | "weeks" | "w" => DateField::Week,
            "day" | "days" | "d" => DateField::Day,
            "dow" => DateField::DayOfWeek,
            "isodow" => DateField::IsoDayOfWeek,
            "doy" => DateField::DayOfYear,
            "hour" | "hours" | "h" | "hr" | "hrs" => DateField::Hour,
            "minute" | "minutes" | "m" | "min" | "mins" => DateField::Minute,
            "second" | "seconds" | "s" | "sec" | "secs" => DateField::Second,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => DateField::Millisecond,
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => DateField::Microsecond,
            "epoch" => DateField::Epoch,
            "julian" => DateField::Julian,
            "timezone" => DateField::Zone,
            "timezone_hour" => DateField::ZoneHour,
            "timezone_minute" => DateField::ZoneMinute,
            _ => return None,
        })
    }

    /// Returns the scale of the field's EXTRACT.
    fn scale(self) -> u8 {
        match self {
            DateField::Second | DateField::Epoch => 6,
            DateField::Millisecond => 3,
            _ => 0,
        }
    }
}

/// Returns the scale of a field's EXTRACT; 0 for an unknown field, which is reported later with the type of its
/// argument.
#[must_use]
pub fn extract_scale(field: &str) -> u8 {
    DateField::from_name(field).map_or(0, DateField::scale)
}

/// Returns the ISO year and week of a day.
pub(super) fn iso_week(days: i32) -> (i32, i64) {
    // An ISO week belongs to the year of its Thursday.
    let weekday = (i64::from(days) + 3).rem_euclid(7);
    let thursday = i64::from(days) - weekday + 3;
    let year = civil_from_days(i32::try_from(thursday).unwrap_or(days)).year;
    (year, (thursday - i64::from(days_from_civil(year, 1, 1))) / 7 + 1)
}

fn unsupported(name: &str, sql_type: &SqlType) -> SqlError {
    SqlError::new(Condition::FeatureNotSupported, format!("unit \"{name}\" not supported for type {sql_type}"))
}

fn unrecognized(name: &str, sql_type: &SqlType) -> SqlError {
    SqlError::new(Condition::InvalidParameterValue, format!("unit \"{name}\" not recognized for type {sql_type}"))
}

/// Returns a field of a timestamp times one million; `None` if timestamps do not have the field.
fn timestamp_field(field: DateField, local_us: i64, universal_us: i64, zone: Option<&SessionZone>) -> Option<i128> {
    let days = i32::try_from(local_us.div_euclid(US_PER_DAY)).ok()?;
    let time = local_us.rem_euclid(US_PER_DAY);
    let civil = civil_from_days(days);
    let year = i64::from(civil.year);
    let whole = match field {
        DateField::Millennium => (year + 999).div_euclid(1000),
        DateField::Century => (year + 99).div_euclid(100),
        DateField::Decade => year.div_euclid(10),
        DateField::Year => year,
        DateField::IsoYear => iso_week(days).0.into(),
        DateField::Quarter => i64::from(civil.month - 1) / 3 + 1,
        DateField::Month => civil.month.into(),
        DateField::Week => iso_week(days).1,
        DateField::Day => civil.day.into(),
        DateField::DayOfWeek => (i64::from(days) + 4).rem_euclid(7),
        DateField::IsoDayOfWeek => (i64::from(days) + 3).rem_euclid(7) + 1,
        DateField::DayOfYear => i64::from(days - days_from_civil(civil.year, 1, 1)) + 1,
        DateField::Epoch => return Some(universal_us.into()),
        DateField::Julian => {
            let day = i128::from(days) + 2_440_588;
            return Some(day * 1_000_000 + i128::from(time) / 86_400);
        }
        DateField::Zone => zone?.offset_at(universal_us).into(),
        DateField::ZoneHour => (zone?.offset_at(universal_us) / 3600).into(),
        DateField::ZoneMinute => (zone?.offset_at(universal_us) / 60 % 60).into(),
        _ => return time_field(field, time),
    };
    Some(i128::from(whole) * 1_000_000)
}

fn time_field(field: DateField, time: i64) -> Option<i128> {
    let in_minute = i128::from(time % 60_000_000);
    Some(match field {
        DateField::Hour => i128::from(time / 3_600_000_000) * 1_000_000,
        DateField::Minute => i128::from(time / 60_000_000 % 60) * 1_000_000,
        DateField::Second => in_minute,
        DateField::Millisecond => in_minute * 1_000,
        DateField::Microsecond => in_minute * 1_000_000,
        DateField::Epoch => time.into(),
        _ => return None,
    })
}

fn interval_field(field: DateField, span: Interval) -> Option<i128> {
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    let whole = match field {
        DateField::Millennium => years / 1000,
        DateField::Century => years / 100,
        DateField::Decade => years / 10,
        DateField::Year => years,
        DateField::Quarter => months / 3 + 1,
        DateField::Month => months,
        DateField::Day => span.days.into(),
        DateField::Hour => span.microseconds / 3_600_000_000,
        DateField::Epoch => {
            // A year has 365.25 days here, a month 30.
            let days = i128::from(months) * 30 + i128::from(span.days);
            return Some(
                i128::from(years) * 31_557_600 * 1_000_000 + days * 86_400 * 1_000_000 + i128::from(span.microseconds),
            );
        }
        _ => return time_field(field, span.microseconds),
    };
    Some(i128::from(whole) * 1_000_000)
}

/// Returns the field of a row times one million; `None` for NULL.
fn field_value(call: &Call<'_>, row: usize) -> SqlResult<Option<i128>> {
    let Some(name) = call.text(0).get(row) else { return Ok(None) };
    let sql_type = &call.argument_types[1];
    // A NULL has no field, not even an unknown one.
    let field = || DateField::from_name(name).ok_or_else(|| unrecognized(name, sql_type));
    let found = match sql_type {
        SqlType::Date => {
            let Some(days) = call.column::<Date32Type>(1).get(row) else { return Ok(None) };
            let (field, us) = (field()?, i64::from(days) * US_PER_DAY);
            let has_time = matches!(
                field,
                DateField::Hour
                    | DateField::Minute
                    | DateField::Second
                    | DateField::Millisecond
                    | DateField::Microsecond
            );
            if has_time { None } else { timestamp_field(field, us, us, None) }
        }
        SqlType::Timestamp => {
            let Some(us) = call.column::<TimestampMicrosecondType>(1).get(row) else { return Ok(None) };
            timestamp_field(field()?, us, us, None)
        }
        SqlType::TimestampTz => {
            let Some(us) = call.column::<TimestampMicrosecondType>(1).get(row) else { return Ok(None) };
            let zone = call.session.zone;
            timestamp_field(field()?, zone.to_local(us), us, Some(&zone))
        }
        SqlType::Time => {
            let Some(us) = call.column::<Time64MicrosecondType>(1).get(row) else { return Ok(None) };
            time_field(field()?, us)
        }
        _ => {
            let Some(span) = call.column::<IntervalMonthDayNanoType>(1).get(row) else { return Ok(None) };
            interval_field(field()?, interval_from_arrow(span))
        }
    };
    found.map(Some).ok_or_else(|| unsupported(name, sql_type))
}

pub(super) fn extract(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let divisor = types::numeric::power_of_ten(6 - scale_of(call.result_type));
    call.build_primitive::<Decimal128Type>(|row| match field_value(call, row)? {
        // Only a Julian day can have further digits.
        Some(value) if value % divisor != 0 => Err(SqlError::unsupported("extract(julian) of a time of day")),
        value => Ok(value.map(|value| value / divisor)),
    })
}

#[expect(clippy::cast_precision_loss, reason = "date_part gives double precision")]
pub(super) fn date_part(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<Float64Type>(|row| Ok(field_value(call, row)?.map(|value| value as f64 / 1e6)))
}
