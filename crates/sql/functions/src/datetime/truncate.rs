//! The function `date_trunc`.

use arrow::array::ArrayRef;
use arrow::datatypes::{IntervalMonthDayNanoType, TimestampMicrosecondType};
use types::text::{US_PER_DAY, civil_from_days, days_from_civil};
use types::{Condition, Interval, SessionZone, SqlError, SqlResult, SqlType};

use super::field::Field;
use crate::arithmetic;
use crate::call::Call;

fn invalid(name: &str, sql_type: &SqlType) -> SqlError {
    SqlError::new(Condition::InvalidParameterValue, format!("unit \"{name}\" not recognized for type {sql_type}"))
}

fn cut(field: Field, us: i64) -> Option<i64> {
    let unit = match field {
        Field::Microsecond => 1,
        Field::Millisecond => 1_000,
        Field::Second => 1_000_000,
        Field::Minute => 60_000_000,
        Field::Hour => 3_600_000_000,
        Field::Day => US_PER_DAY,
        _ => {
            let days = i32::try_from(us.div_euclid(US_PER_DAY)).ok()?;
            let civil = civil_from_days(days);
            // Centuries and millennia begin with years ending in 1.
            let first = match field {
                Field::Week => days - (days + 3).rem_euclid(7),
                Field::Month => days_from_civil(civil.year, civil.month, 1),
                Field::Quarter => days_from_civil(civil.year, (civil.month - 1) / 3 * 3 + 1, 1),
                Field::Year => days_from_civil(civil.year, 1, 1),
                Field::Decade => days_from_civil((civil.year.div_euclid(10) * 10).max(1), 1, 1),
                Field::Century => days_from_civil((civil.year - 1).div_euclid(100) * 100 + 1, 1, 1),
                Field::Millennium => days_from_civil((civil.year - 1).div_euclid(1000) * 1000 + 1, 1, 1),
                _ => return None,
            };
            return Some(i64::from(first) * US_PER_DAY);
        }
    };
    Some(us.div_euclid(unit) * unit)
}

fn field(name: &str, sql_type: &SqlType) -> SqlResult<Field> {
    Field::named(name).ok_or_else(|| invalid(name, sql_type))
}

pub(super) fn timestamp(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (names, values) = (call.text(0), call.column::<TimestampMicrosecondType>(1));
    call.primitive::<TimestampMicrosecondType>(|row| {
        let (Some(name), Some(us)) = (names.get(row), values.get(row)) else { return Ok(None) };
        cut(field(name, &call.types[1])?, us).map(Some).ok_or_else(|| invalid(name, &call.types[1]))
    })
}

pub(super) fn timestamptz(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (names, values) = (call.text(0), call.column::<TimestampMicrosecondType>(1));
    call.primitive::<TimestampMicrosecondType>(|row| {
        let (Some(name), Some(us)) = (names.get(row), values.get(row)) else { return Ok(None) };
        let zone = match call.count() {
            3 => match call.text(2).get(row) {
                Some(zone) => SessionZone::parse_in_value(zone)?,
                None => return Ok(None),
            },
            _ => call.session.zone,
        };
        let field = field(name, &call.types[1])?;
        let local = zone.to_local(us);
        let shortened = cut(field, local).ok_or_else(|| invalid(name, &call.types[1]))?;
        // Units below a day keep the UTC offset, also in the hour that daylight saving time repeats.
        let is_short =
            matches!(field, Field::Microsecond | Field::Millisecond | Field::Second | Field::Minute | Field::Hour);
        Ok(Some(if is_short { us - (local - shortened) } else { zone.to_universal(shortened) }))
    })
}

pub(super) fn interval(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (names, values) = (call.text(0), call.column::<IntervalMonthDayNanoType>(1));
    call.primitive::<IntervalMonthDayNanoType>(|row| {
        let (Some(name), Some(span)) = (names.get(row), values.get(row)) else { return Ok(None) };
        let Interval { months, days, microseconds } = arithmetic::interval(span);
        let clock = |unit: i64| Interval::new(months, days, microseconds / unit * unit);
        let calendar = |unit: i32| Interval::new(months / unit * unit, 0, 0);
        let cut = match field(name, &call.types[1])? {
            Field::Microsecond => clock(1),
            Field::Millisecond => clock(1_000),
            Field::Second => clock(1_000_000),
            Field::Minute => clock(60_000_000),
            Field::Hour => clock(3_600_000_000),
            Field::Day => Interval::new(months, days, 0),
            Field::Month => calendar(1),
            Field::Quarter => calendar(3),
            Field::Year => calendar(12),
            Field::Decade => calendar(120),
            Field::Century => calendar(1_200),
            Field::Millennium => calendar(12_000),
            _ => return Err(invalid(name, &call.types[1])),
        };
        arithmetic::arrow(cut).map(Some)
    })
}
