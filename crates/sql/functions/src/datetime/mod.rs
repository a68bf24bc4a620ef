//! Functions of dates and times.
//!
//! - `extract_field.rs`: EXTRACT and `date_part`; `truncate.rs`: `date_trunc`; `make.rs`: construction from numbers,
//! - `datetime_template.rs`: `to_char`, `to_date` and `to_timestamp` by template,
//! - `number_template.rs`: `to_char` and `to_number` of numbers.

mod datetime_template;
mod extract_field;
mod make;
mod number_template;
mod truncate;

use ::arrow::array::ArrayRef;
use ::arrow::datatypes::{Date32Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType};
use types::text::US_PER_DAY;
use types::{Interval, SessionZone, SqlResult, SqlType};

pub(crate) use self::extract_field::DateField;
pub use self::extract_field::extract_scale;
pub(super) use self::make::micros_from_epoch_seconds;
use super::arithmetic::{interval_from_arrow, interval_to_arrow};
use super::call::Call;
use super::catalog_entry::catalog_entry;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};

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
    ($name:literal, $scale:literal, $description:literal) => {
        Definition::new(
            $name,
            $description,
            &[
                Overload::rows(
                    &[T::Text, T::Timestamp],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    F::Literals(&[0]),
                    extract_field::extract,
                ),
                Overload::rows(
                    &[T::Text, T::Date],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    F::Literals(&[0]),
                    extract_field::extract,
                ),
                Overload::rows(
                    &[T::Text, T::TimestampTz],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    F::Literals(&[0]),
                    extract_field::extract,
                ),
                Overload::rows(
                    &[T::Text, T::Time],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    F::Literals(&[0]),
                    extract_field::extract,
                ),
                Overload::rows(
                    &[T::Text, T::Interval],
                    ResultType::fixed(SqlType::Numeric { precision: 38, scale: $scale }),
                    F::Literals(&[0]),
                    extract_field::extract,
                ),
            ],
        )
    };
}

pub(super) const DEFINITIONS: &[Definition] = &[
    extract!("extract_0", 0, "extract a field with a whole value; written EXTRACT(field FROM x)"),
    extract!("extract_3", 3, "extract a field with three decimals; written EXTRACT(field FROM x)"),
    extract!("extract_6", 6, "extract a field with six decimals; written EXTRACT(field FROM x)"),
    Definition::new(
        "date_part",
        "extract a field",
        &[
            Overload::rows(&[T::Text, T::Timestamp], FLOAT8, F::Literals(&[0]), extract_field::date_part),
            Overload::rows(&[T::Text, T::Date], FLOAT8, F::Literals(&[0]), extract_field::date_part),
            Overload::rows(&[T::Text, T::TimestampTz], FLOAT8, F::Literals(&[0]), extract_field::date_part),
            Overload::rows(&[T::Text, T::Time], FLOAT8, F::Literals(&[0]), extract_field::date_part),
            Overload::rows(&[T::Text, T::Interval], FLOAT8, F::Literals(&[0]), extract_field::date_part),
        ],
    )
    .in_catalog(&[
        catalog_entry(1171, "text,timestamptz", "float8").stable(),
        catalog_entry(1172, "text,interval", "float8"),
        catalog_entry(1384, "text,date", "float8"),
        catalog_entry(1385, "text,time", "float8"),
        catalog_entry(2021, "text,timestamp", "float8"),
    ]),
    Definition::new(
        "date_trunc",
        "truncate to specified units",
        &[
            Overload::rows(&[T::Text, T::TimestampTz], TIMESTAMPTZ, F::Literals(&[0]), truncate::timestamptz),
            Overload::rows(&[T::Text, T::Timestamp], TIMESTAMP, F::Literals(&[0]), truncate::timestamp),
            Overload::rows(&[T::Text, T::Interval], INTERVAL, F::Literals(&[0]), truncate::interval),
            Overload::rows(
                &[T::Text, T::TimestampTz, T::Text],
                TIMESTAMPTZ,
                F::Literals(&[0, 2]),
                truncate::timestamptz,
            ),
        ],
    )
    .in_catalog(&[
        catalog_entry(1217, "text,timestamptz", "timestamptz").stable(),
        catalog_entry(1218, "text,interval", "interval"),
        catalog_entry(1284, "text,timestamptz,text", "timestamptz").stable(),
        catalog_entry(2020, "text,timestamp", "timestamp"),
    ]),
    Definition::new(
        "age",
        "date difference preserving months and years",
        &[
            Overload::rows(&[T::TimestampTz, T::TimestampTz], INTERVAL, F::Overflow, age_tz),
            Overload::rows(&[T::Timestamp, T::Timestamp], INTERVAL, F::Overflow, age),
            Overload::rows(&[T::TimestampTz], INTERVAL, F::Overflow, age_today),
            Overload::rows(&[T::Timestamp], INTERVAL, F::Overflow, age_today),
        ],
    )
    .in_catalog(&[
        catalog_entry(1199, "timestamptz,timestamptz", "interval"),
        catalog_entry(1386, "timestamptz", "interval").stable(),
        catalog_entry(2058, "timestamp,timestamp", "interval"),
        catalog_entry(2059, "timestamp", "interval").stable(),
    ]),
    Definition::new(
        "justify_days",
        "promote groups of 30 days to numbers of months",
        &[Overload::rows(&[T::Interval], INTERVAL, F::Overflow, |call| justify(call, Interval::justify_days))],
    )
    .in_catalog(&[catalog_entry(1295, "interval", "interval")]),
    Definition::new(
        "justify_hours",
        "promote groups of 24 hours to numbers of days",
        &[Overload::rows(&[T::Interval], INTERVAL, F::Overflow, |call| justify(call, Interval::justify_hours))],
    )
    .in_catalog(&[catalog_entry(1175, "interval", "interval")]),
    Definition::new(
        "justify_interval",
        "promote groups of 24 hours to days and groups of 30 days to months",
        &[Overload::rows(&[T::Interval], INTERVAL, F::Overflow, |call| justify(call, Interval::justify))],
    )
    .in_catalog(&[catalog_entry(2711, "interval", "interval")]),
    Definition::new(
        "isfinite",
        "finite date or timestamp?",
        &[
            Overload::rows(&[T::TimestampTz], BOOL, F::Nothing, is_finite),
            Overload::rows(&[T::Timestamp], BOOL, F::Nothing, is_finite),
            Overload::rows(&[T::Date], BOOL, F::Nothing, is_finite_date),
        ],
    )
    .in_catalog(&[
        catalog_entry(1373, "date", "bool"),
        catalog_entry(1389, "timestamptz", "bool"),
        catalog_entry(2048, "timestamp", "bool"),
    ]),
    Definition::new(
        "timezone",
        "adjust a timestamp to a time zone; also written x AT TIME ZONE y",
        &[
            Overload::rows(&[T::Text, T::TimestampTz], TIMESTAMP, F::Literals(&[0]), to_local_time),
            Overload::rows(&[T::Text, T::Timestamp], TIMESTAMPTZ, F::Literals(&[0]), from_local_time),
        ],
    )
    .in_catalog(&[
        catalog_entry(1159, "text,timestamptz", "timestamp"),
        catalog_entry(2069, "text,timestamp", "timestamptz"),
    ]),
    Definition::new(
        "make_date",
        "construct date",
        &[Overload::rows(&[T::Int4, T::Int4, T::Int4], DATE, F::SomeValues, make::date)],
    )
    .in_catalog(&[catalog_entry(3846, "int4,int4,int4", "date")]),
    Definition::new(
        "make_time",
        "construct time",
        &[Overload::rows(&[T::Int4, T::Int4, T::Float8], TIME, F::SomeValues, make::time)],
    )
    .in_catalog(&[catalog_entry(3847, "int4,int4,float8", "time")]),
    Definition::new(
        "make_timestamp",
        "construct timestamp",
        &[Overload::rows(
            &[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Float8],
            TIMESTAMP,
            F::SomeValues,
            make::timestamp,
        )],
    )
    .in_catalog(&[catalog_entry(3461, "int4,int4,int4,int4,int4,float8", "timestamp")]),
    Definition::new(
        "make_timestamptz",
        "construct timestamp with time zone",
        &[
            Overload::rows(
                &[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Float8],
                TIMESTAMPTZ,
                F::SomeValues,
                make::timestamptz,
            ),
            Overload::rows(
                &[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Float8, T::Text],
                TIMESTAMPTZ,
                F::SomeValues,
                make::timestamptz,
            ),
        ],
    )
    .in_catalog(&[
        catalog_entry(3462, "int4,int4,int4,int4,int4,float8", "timestamptz").stable(),
        catalog_entry(3463, "int4,int4,int4,int4,int4,float8,text", "timestamptz").stable(),
    ]),
    Definition::new(
        "make_interval",
        "construct interval",
        &[
            Overload::rows(&[], INTERVAL, F::Nothing, make::interval),
            Overload::rows(&[T::Int4], INTERVAL, F::SomeValues, make::interval),
            Overload::rows(&[T::Int4, T::Int4], INTERVAL, F::SomeValues, make::interval),
            Overload::rows(&[T::Int4, T::Int4, T::Int4], INTERVAL, F::SomeValues, make::interval),
            Overload::rows(&[T::Int4, T::Int4, T::Int4, T::Int4], INTERVAL, F::SomeValues, make::interval),
            Overload::rows(&[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4], INTERVAL, F::SomeValues, make::interval),
            Overload::rows(
                &[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Int4],
                INTERVAL,
                F::SomeValues,
                make::interval,
            ),
            Overload::rows(
                &[T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Int4, T::Float8],
                INTERVAL,
                F::SomeValues,
                make::interval,
            ),
        ],
    )
    .in_catalog(&[catalog_entry(3464, "int4,int4,int4,int4,int4,int4,float8", "interval")]),
    Definition::new(
        "to_timestamp",
        "convert seconds since 1970, or text, to timestamp with time zone",
        &[
            Overload::rows(&[T::Float8], TIMESTAMPTZ, F::SomeValues, make::from_epoch),
            Overload::rows(&[T::Text, T::Text], TIMESTAMPTZ, F::SomeValues, datetime_template::to_timestamp),
        ],
    )
    .in_catalog(&[
        catalog_entry(1158, "float8", "timestamptz"),
        catalog_entry(1778, "text,text", "timestamptz").stable(),
    ]),
    Definition::new(
        "to_date",
        "convert text to date",
        &[Overload::rows(&[T::Text, T::Text], DATE, F::SomeValues, datetime_template::to_date)],
    )
    .in_catalog(&[catalog_entry(1780, "text,text", "date").stable()]),
    Definition::new(
        "to_char",
        "format a number or a time as text",
        &[
            Overload::rows(&[T::TimestampTz, T::Text], TEXT, F::Literals(&[1]), datetime_template::to_char),
            Overload::rows(&[T::Timestamp, T::Text], TEXT, F::Literals(&[1]), datetime_template::to_char),
            Overload::rows(&[T::Interval, T::Text], TEXT, F::Literals(&[1]), datetime_template::interval_to_char),
            Overload::rows(&[T::Numeric, T::Text], TEXT, F::Literals(&[1]), number_template::to_char),
            Overload::rows(&[T::Float8, T::Text], TEXT, F::SomeValues, number_template::float_to_char),
        ],
    )
    .in_catalog(&[
        catalog_entry(1768, "interval,text", "text").stable(),
        catalog_entry(1770, "timestamptz,text", "text").stable(),
        catalog_entry(1772, "numeric,text", "text").stable(),
        catalog_entry(1776, "float8,text", "text").stable(),
        catalog_entry(2049, "timestamp,text", "text").stable(),
    ]),
    Definition::new(
        "to_number",
        "convert text to numeric",
        &[Overload::rows(&[T::Text, T::Text], NUMERIC, F::SomeValues, number_template::to_number)],
    )
    .in_catalog(&[catalog_entry(1777, "text,text", "numeric").stable()]),
    Definition::stable("now", "current transaction time", &[Overload::rows(&[], TIMESTAMPTZ, F::Nothing, now)])
        .in_catalog(&[catalog_entry(1299, "", "timestamptz").stable()]),
    Definition::stable(
        "transaction_timestamp",
        "current transaction time",
        &[Overload::rows(&[], TIMESTAMPTZ, F::Nothing, now)],
    )
    .in_catalog(&[catalog_entry(2647, "", "timestamptz").stable()]),
    Definition::stable(
        "current_timestamp",
        "current transaction time",
        &[Overload::rows(&[], TIMESTAMPTZ, F::Nothing, now)],
    ),
    Definition::stable(
        "statement_timestamp",
        "current statement time",
        &[Overload::rows(&[], TIMESTAMPTZ, F::Nothing, statement)],
    )
    .in_catalog(&[catalog_entry(2648, "", "timestamptz").stable()]),
    Definition::stable(
        "clock_timestamp",
        "current clock time",
        &[Overload::rows(&[], TIMESTAMPTZ, F::Nothing, statement)],
    )
    .in_catalog(&[catalog_entry(2649, "", "timestamptz").volatile()]),
    Definition::stable(
        "localtimestamp",
        "current transaction time in the session's time zone",
        &[Overload::rows(&[], TIMESTAMP, F::Nothing, local)],
    ),
    Definition::stable("current_date", "current date", &[Overload::rows(&[], DATE, F::Nothing, today)]),
    Definition::stable(
        "localtime",
        "current time of day in the session's time zone",
        &[Overload::rows(&[], TIME, F::Nothing, local_time)],
    ),
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
