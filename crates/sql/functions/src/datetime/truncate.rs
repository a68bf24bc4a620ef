//! The function `date_trunc`.

use arrow::array::ArrayRef;
use arrow::datatypes::{IntervalMonthDayNanoType, TimestampMicrosecondType};
use types::text::{US_PER_DAY, civil_from_days, days_from_civil};
use types::{Condition, Interval, SessionZone, SqlError, SqlResult, SqlType};

use super::extract_field::DateField;
use crate::arithmetic;
use crate::call::Call;

fn invalid(name: &str, sql_type: &SqlType) -> SqlError {
    SqlError::new(Condition::InvalidParameterValue, format!("unit \"{name}\" not recognized for type {sql_type}"))
}

fn truncate(field: DateField, us: i64) -> Option<i64> {
    let unit = match field {
        DateField::Microsecond => 1,
        DateField::Millisecond => 1_000,
        DateField::Second => 1_000_000,
        DateField::Minute => 60_000_000,
        DateField::Hour => 3_600_000_000,
        DateField::Day => US_PER_DAY,
        _ => {
            let days = i32::try_from(us.div_euclid(US_PER_DAY)).ok()?;
            let civil = civil_from_days(days);
            // Centuries and millennia begin with years ending in 1.
            let first = match field {
                DateField::Week => days - (days + 3).rem_euclid(7),
                DateField::Month => days_from_civil(civil.year, civil.month, 1),
                DateField::Quarter => days_from_civil(civil.year, (civil.month - 1) / 3 * 3 + 1, 1),
                DateField::Year => days_from_civil(civil.year, 1, 1),
                DateField::Decade => days_from_civil((civil.year.div_euclid(10) * 10).max(1), 1, 1),
                DateField::Century => days_from_civil((civil.year - 1).div_euclid(100) * 100 + 1, 1, 1),
                DateField::Millennium => days_from_civil((civil.year - 1).div_euclid(1000) * 1000 + 1, 1, 1),
                _ => return None,
            };
            return Some(i64::from(first) * US_PER_DAY);
        }
    };
    Some(us.div_euclid(unit) * unit)
}

fn field(name: &str, sql_type: &SqlType) -> SqlResult<DateField> {
    DateField::from_name(name).ok_or_else(|| invalid(name, sql_type))
}

pub(super) fn timestamp(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (names, values) = (call.text(0), call.column::<TimestampMicrosecondType>(1));
    call.build_primitive::<TimestampMicrosecondType>(|row| {
        let (Some(name), Some(us)) = (names.get(row), values.get(row)) else { return Ok(None) };
        truncate(field(name, &call.argument_types[1])?, us)
            .map(Some)
            .ok_or_else(|| invalid(name, &call.argument_types[1]))
    })
}

pub(super) fn timestamptz(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (names, values) = (call.text(0), call.column::<TimestampMicrosecondType>(1));
    call.build_primitive::<TimestampMicrosecondType>(|row| {
        let (Some(name), Some(us)) = (names.get(row), values.get(row)) else { return Ok(None) };
        let zone = match call.argument_count() {
            3 => match call.text(2).get(row) {
                Some(zone) => SessionZone::parse_in_value(zone)?,
                None => return Ok(None),
            },
            _ => call.session.zone,
        };
        let field = field(name, &call.argument_types[1])?;
        let local = zone.to_local(us);
        let shortened = truncate(field, local).ok_or_else(|| invalid(name, &call.argument_types[1]))?;
        // Units below a day keep the UTC offset, also in the hour that daylight saving time repeats.
        let is_short = matches!(
            field,
            DateField::Microsecond | DateField::Millisecond | DateField::Second | DateField::Minute | DateField::Hour
        );
        Ok(Some(if is_short { us - (local - shortened) } else { zone.to_universal(shortened) }))
    })
}

pub(super) fn interval(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (names, values) = (call.text(0), call.column::<IntervalMonthDayNanoType>(1));
    call.build_primitive::<IntervalMonthDayNanoType>(|row| {
        let (Some(name), Some(span)) = (names.get(row), values.get(row)) else { return Ok(None) };
        let Interval { months, days, microseconds } = arithmetic::interval_from_arrow(span);
        let clock = |unit: i64| Interval::new(months, days, microseconds / unit * unit);
        let calendar = |unit: i32| Interval::new(months / unit * unit, 0, 0);
        let cut = match field(name, &call.argument_types[1])? {
            DateField::Microsecond => clock(1),
            DateField::Millisecond => clock(1_000),
            DateField::Second => clock(1_000_000),
            DateField::Minute => clock(60_000_000),
            DateField::Hour => clock(3_600_000_000),
            DateField::Day => Interval::new(months, days, 0),
            DateField::Month => calendar(1),
            DateField::Quarter => calendar(3),
            DateField::Year => calendar(12),
            DateField::Decade => calendar(120),
            DateField::Century => calendar(1_200),
            DateField::Millennium => calendar(12_000),
            _ => return Err(invalid(name, &call.argument_types[1])),
        };
        arithmetic::interval_to_arrow(cut).map(Some)
    })
}
