//! Functions of dates and times.
//!
//! - `field.rs`: EXTRACT and `date_part`; `truncate.rs`: `date_trunc`; `make.rs`: construction from numbers,
//! - `template.rs`: `to_char`, `to_date` and `to_timestamp` by template,
//! - `number_template.rs`: `to_char` and `to_number` of numbers.

mod field;
mod make;
mod number_template;
mod template;
mod truncate;

use ::arrow::array::ArrayRef;
use ::arrow::datatypes::{Date32Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType};
use types::text::US_PER_DAY;
use types::{Interval, SessionZone, SqlResult, SqlType};

pub(crate) use self::field::DateField;
pub use self::field::extract_scale;
pub(super) use self::make::micros_from_epoch_seconds;
use super::arithmetic::{interval_from_arrow, interval_to_arrow};
use super::call::Call;
use super::definition::{Definition, Overload, ParameterType as T, ResultType};

const FLOAT8: ResultType = ResultType::fixed(SqlType::Float8);
const TEXT: ResultType = ResultType::fixed(SqlType::Text);
const DATE: ResultType = ResultType::fixed(SqlType::Date);
const TIME: ResultType = ResultType::fixed(SqlType::Time);
const TIMESTAMP: ResultType = ResultType::fixed(SqlType::Timestamp);
const TIMESTAMPTZ: ResultType = ResultType::fixed(SqlType::TimestampTz);
const INTERVAL: ResultType = ResultType::fixed(SqlType::Interval);
const BOOL: ResultType = ResultType::fixed(SqlType::Bool);
const NUMERIC: ResultType = ResultType::fixed(SqlType::BARE_NUMERIC);

/// Defines the EXTRACT of fields of a given scale.
macro_rules! extract {
    ($name:literal, $scale:literal) => {
        Definition::new(
            $name,
            &[
                Overload::rows(
                    &[T::Text, T::Timestamp],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    field::extract,
                ),
                Overload::rows(
                    &[T::Text, T::Date],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    field::extract,
                ),
                Overload::rows(
                    &[T::Text, T::TimestampTz],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    field::extract,
                ),
                Overload::rows(
                    &[T::Text, T::Time],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    field::extract,
                ),
                Overload::rows(
                    &[T::Text, T::Interval],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    field::extract,
                ),
            ],
        )
    };
}

pub(super) const DEFINITIONS: &[Definition] = &[
    extract!("extract_0", 0),
    extract!("extract_3", 3),
    extract!("extract_6", 6),
    Definition::new(
        "date_part",
        &[
            Overload::rows(&[T::Text, T::Timestamp], FLOAT8, field::date_part),
            Overload::rows(&[T::Text, T::Date], FLOAT8, field::date_part),
            Overload::rows(&[T::Text, T::TimestampTz], FLOAT8, field::date_part),
            Overload::rows(&[T::Text, T::Time], FLOAT8, field::date_part),
            Overload::rows(&[T::Text, T::Interval], FLOAT8, field::date_part),
        ],
    ),
    Definition::new(
        "date_trunc",
        &[
            Overload::rows(&[T::Text, T::TimestampTz], TIMESTAMPTZ, truncate::timestamptz),
            Overload::rows(&[T::Text, T::Timestamp], TIMESTAMP, truncate::timestamp),
            Overload::rows(&[T::Text, T::Interval], INTERVAL, truncate::interval),
            Overload::rows(&[T::Text, T::TimestampTz, T::Text], TIMESTAMPTZ, truncate::timestamptz),
        ],
    ),
    Definition::new(
        "age",
        &[
            Overload::rows(&[T::TimestampTz, T::TimestampTz], INTERVAL, age_tz),
            Overload::rows(&[T::Timestamp, T::Timestamp], INTERVAL, age),
            Overload::rows(&[T::TimestampTz], INTERVAL, age_today),
            Overload::rows(&[T::Timestamp], INTERVAL, age_today),
        ],
    ),
    Definition::new(
        "justify_days",
        &[Overload::rows(&[T::Interval], INTERVAL, |call| justify(call, Interval::justify_days))],
    ),
    Definition::new(
        "justify_hours",
        &[Overload::rows(&[T::Interval], INTERVAL, |call| justify(call, Interval::justify_hours))],
    ),
    Definition::new(
        "justify_interval",
        &[Overload::rows(&[T::Interval], INTERVAL, |call| justify(call, Interval::justify))],
    ),
    Definition::new(
        "isfinite",
        &[
            Overload::rows(&[T::TimestampTz], BOOL, is_finite),
            Overload::rows(&[T::Timestamp], BOOL, is_finite),
            Overload::rows(&[T::Date], BOOL, is_finite_date),
        ],
    ),
    Definition::new(
        "timezone",
        &[
            Overload::rows(&[T::Text, T::TimestampTz], TIMESTAMP, to_local_time),
            Overload::rows(&[T::Text, T::Timestamp], TIMESTAMPTZ, from_local_time),
        ],
    ),
    Definition::new("make_date", &[Overload::rows(&[T::Int4, T::Int4, T::Int4], DATE, make::date)]),
    Definition::new("make_time", &[Overload::rows(&[T::Int4, T::Int4, T::Float8], TIME, make::time)]),
    Definition::new(
        "make_timestamp",
        &[Overload::rows(&[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Float8], TIMESTAMP, make::timestamp)],
    ),
    Definition::new(
        "make_timestamptz",
        &[
            Overload::rows(&[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Float8], TIMESTAMPTZ, make::timestamptz),
            Overload::rows(
                &[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Float8, T::Text],
                TIMESTAMPTZ,
                make::timestamptz,
            ),
        ],
    ),
    Definition::new(
        "make_interval",
        &[
            Overload::rows(&[], INTERVAL, make::interval),
            Overload::rows(&[T::Int4], INTERVAL, make::interval),
            Overload::rows(&[T::Int4, T::Int4], INTERVAL, make::interval),
            Overload::rows(&[T::Int4, T::Int4, T::Int4], INTERVAL, make::interval),
            Overload::rows(&[T::Int4, T::Int4, T::Int4, T::Int4], INTERVAL, make::interval),
            Overload::rows(&[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4], INTERVAL, make::interval),
            Overload::rows(&[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Int4], INTERVAL, make::interval),
            Overload::rows(
                &[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Float8],
                INTERVAL,
                make::interval,
            ),
        ],
    ),
    Definition::new(
        "to_timestamp",
        &[
            Overload::rows(&[T::Float8], TIMESTAMPTZ, make::from_epoch),
            Overload::rows(&[T::Text, T::Text], TIMESTAMPTZ, template::to_timestamp),
        ],
    ),
    Definition::new("to_date", &[Overload::rows(&[T::Text, T::Text], DATE, template::to_date)]),
    Definition::new(
        "to_char",
        &[
            Overload::rows(&[T::TimestampTz, T::Text], TEXT, template::to_char),
            Overload::rows(&[T::Timestamp, T::Text], TEXT, template::to_char),
            Overload::rows(&[T::Interval, T::Text], TEXT, template::interval_to_char),
            Overload::rows(&[T::Numeric, T::Text], TEXT, number_template::to_char),
            Overload::rows(&[T::Float8, T::Text], TEXT, number_template::float_to_char),
        ],
    ),
    Definition::new("to_number", &[Overload::rows(&[T::Text, T::Text], NUMERIC, number_template::to_number)]),
    Definition::stable("now", &[Overload::rows(&[], TIMESTAMPTZ, now)]),
    Definition::stable("transaction_timestamp", &[Overload::rows(&[], TIMESTAMPTZ, now)]),
    Definition::stable("current_timestamp", &[Overload::rows(&[], TIMESTAMPTZ, now)]),
    Definition::stable("statement_timestamp", &[Overload::rows(&[], TIMESTAMPTZ, statement)]),
    Definition::stable("clock_timestamp", &[Overload::rows(&[], TIMESTAMPTZ, statement)]),
    Definition::stable("localtimestamp", &[Overload::rows(&[], TIMESTAMP, local)]),
    Definition::stable("current_date", &[Overload::rows(&[], DATE, today)]),
    Definition::stable("localtime", &[Overload::rows(&[], TIME, local_time)]),
];

fn age(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (end, start) = (call.column::<TimestampMicrosecondType>(0), call.column::<TimestampMicrosecondType>(1));
    call.build_primitive::<IntervalMonthDayNanoType>(|row| match (end.get(row), start.get(row)) {
        (Some(end), Some(start)) => interval_to_arrow(Interval::age(end, start)).map(Some),
        _ => Ok(None),
    })
}

fn age_tz(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let zone = call.session.zone;
    let (end, start) = (call.column::<TimestampMicrosecondType>(0), call.column::<TimestampMicrosecondType>(1));
    call.build_primitive::<IntervalMonthDayNanoType>(|row| match (end.get(row), start.get(row)) {
        (Some(end), Some(start)) => {
            interval_to_arrow(Interval::age(zone.to_local(end), zone.to_local(start))).map(Some)
        }
        _ => Ok(None),
    })
}

/// Evaluates `age(t)`, the interval from `t` to the start of the current date.
fn age_today(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let zone = call.session.zone;
    let midnight = zone.to_local(call.session.transaction_us).div_euclid(US_PER_DAY) * US_PER_DAY;
    let start = call.column::<TimestampMicrosecondType>(0);
    let is_zoned = call.argument_types[0] == SqlType::TimestampTz;
    call.build_primitive::<IntervalMonthDayNanoType>(|row| {
        let local = start.get(row).map(|start| if is_zoned { zone.to_local(start) } else { start });
        local.map(|start| interval_to_arrow(Interval::age(midnight, start))).transpose()
    })
}

fn justify(call: &Call<'_>, apply: fn(Interval) -> SqlResult<Interval>) -> SqlResult<ArrayRef> {
    let spans = call.column::<IntervalMonthDayNanoType>(0);
    call.build_primitive::<IntervalMonthDayNanoType>(|row| {
        spans.get(row).map(|span| apply(interval_from_arrow(span)).and_then(interval_to_arrow)).transpose()
    })
}

fn is_finite(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let values = call.column::<TimestampMicrosecondType>(0);
    call.build_booleans(|row| Ok(values.get(row).map(|_| true)))
}

fn is_finite_date(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let values = call.column::<Date32Type>(0);
    call.build_booleans(|row| Ok(values.get(row).map(|_| true)))
}

/// Converts a timestamp with time zone to local time in a zone.
fn to_local_time(call: &Call<'_>) -> SqlResult<ArrayRef> {
    zoned(call, |zone, us| zone.to_local(us))
}

/// Converts a local time in a zone to a timestamp with time zone.
fn from_local_time(call: &Call<'_>) -> SqlResult<ArrayRef> {
    zoned(call, |zone, us| zone.to_universal(us))
}

fn zoned(call: &Call<'_>, apply: impl Fn(&SessionZone, i64) -> i64) -> SqlResult<ArrayRef> {
    let (names, values) = (call.text(0), call.column::<TimestampMicrosecondType>(1));
    let mut last: Option<(&str, SessionZone)> = None;
    call.build_primitive::<TimestampMicrosecondType>(|row| {
        let (Some(name), Some(us)) = (names.get(row), values.get(row)) else { return Ok(None) };
        let zone = match last {
            Some((kept, zone)) if kept == name => zone,
            _ => SessionZone::parse_in_value(name)?,
        };
        last = Some((name, zone));
        Ok(Some(apply(&zone, us)))
    })
}

fn now(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<TimestampMicrosecondType>(|_| Ok(Some(call.session.transaction_us)))
}

fn statement(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<TimestampMicrosecondType>(|_| Ok(Some(call.session.statement_us)))
}

fn local(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<TimestampMicrosecondType>(|_| {
        Ok(Some(call.session.zone.to_local(call.session.transaction_us)))
    })
}

fn today(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let day = call.session.zone.to_local(call.session.transaction_us).div_euclid(US_PER_DAY);
    call.build_primitive::<Date32Type>(|_| Ok(i32::try_from(day).ok()))
}

fn local_time(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let us = call.session.zone.to_local(call.session.transaction_us).rem_euclid(US_PER_DAY);
    call.build_primitive::<Time64MicrosecondType>(|_| Ok(Some(us)))
}
