//! Text form of `timestamp` and `timestamptz`, whose values are microseconds since 1970-01-01: `2024-01-31 10:00:00.5`,
//! with `+00` appended for `timestamptz`.

use super::DateContext;
use super::calendar_date::{TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY, days_from_civil};
use super::date::{checked_days, format_date, parse_iso_date, resolve_day};
use super::datetime_parser::{NamedInstant, invalid_datetime, parse_datetime};
use super::time::{format_time, parse_iso_time};
use crate::time_zone::push_offset;
use crate::{Condition, SessionZone, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Parses a timestamp, ignoring a time zone in the text as PostgreSQL does.
pub fn parse_timestamp(text: &str) -> SqlResult<i64> {
    parse_timestamp_in(text, &DateContext::default())
}

/// Parses a timestamp in a session's date order.
pub fn parse_timestamp_in(text: &str, context: &DateContext) -> SqlResult<i64> {
    if let Some((us, rest)) = parse_iso_timestamp(text)
        && rest.is_empty()
    {
        return us;
    }
    let written = parse_datetime(text, "timestamp", context)?;
    let us = match (written.date, written.instant) {
        (Some(civil), None) => {
            i64::from(days_from_civil(civil.year, civil.month, civil.day)) * US_PER_DAY + written.time_us.unwrap_or(0)
        }
        (None, Some(NamedInstant::Utc(0))) => 0,
        (None, Some(NamedInstant::Utc(us))) => context.zone.to_local(us),
        (None, Some(day)) => i64::from(resolve_day(day, context)) * US_PER_DAY + written.time_us.unwrap_or(0),
        _ => return Err(invalid_datetime("timestamp", text)),
    };
    check_range(us, text)
}

/// Parses a timestamp with time zone and returns universal time. Without a zone in the text it is local to `zone`.
pub fn parse_timestamptz(text: &str, zone: &SessionZone) -> SqlResult<i64> {
    parse_timestamptz_in(text, &DateContext { zone: *zone, ..DateContext::default() })
}

/// Parses a timestamp with time zone in a session's zone and date order and returns universal time.
pub fn parse_timestamptz_in(text: &str, context: &DateContext) -> SqlResult<i64> {
    if let Some((us, rest)) = parse_iso_timestamp(text) {
        match rest {
            [] => return us.and_then(|local| check_range(context.zone.to_universal(local), text)),
            [sign @ (b'+' | b'-'), h1 @ b'0'..=b'9', h2 @ b'0'..=b'9', minutes @ ..] => {
                let minutes = match minutes {
                    [] => Some(0),
                    [b':', m1 @ b'0'..=b'5', m2 @ b'0'..=b'9'] => {
                        Some(i64::from(m1 - b'0') * 10 + i64::from(m2 - b'0'))
                    }
                    _ => None,
                };
                let hours = i64::from(h1 - b'0') * 10 + i64::from(h2 - b'0');
                if let Some(minutes) = minutes
                    && hours <= 15
                {
                    let east = (hours * 60 + minutes) * 60_000_000;
                    return us
                        .and_then(|local| check_range(if *sign == b'+' { local - east } else { local + east }, text));
                }
            }
            [b'Z' | b'z'] => return us.and_then(|universal| check_range(universal, text)),
            _ => {}
        }
    }
    let written = parse_datetime(text, "timestamp with time zone", context)?;
    let zone = written.zone.unwrap_or(context.zone);
    let universal = match (written.date, written.instant) {
        (Some(civil), None) => {
            let days = i64::from(days_from_civil(civil.year, civil.month, civil.day));
            zone.to_universal(days * US_PER_DAY + written.time_us.unwrap_or(0))
        }
        (None, Some(NamedInstant::Utc(us))) => us,
        (None, Some(day)) => {
            zone.to_universal(i64::from(resolve_day(day, context)) * US_PER_DAY + written.time_us.unwrap_or(0))
        }
        _ => return Err(invalid_datetime("timestamp with time zone", text)),
    };
    check_range(universal, text)
}

/// Appends `YYYY-MM-DD HH:MM:SS[.ffffff]`.
pub fn format_timestamp(us: i64, out: &mut String) {
    let days = i32::try_from(us.div_euclid(US_PER_DAY)).expect("64-bit microseconds span 32-bit days");
    let before = out.len();
    format_date(days, out);
    let is_before_christ = out.ends_with(" BC");
    if is_before_christ {
        out.truncate(out.len() - 3);
    }
    debug_assert!(before < out.len(), "a date is never empty");
    out.push(' ');
    format_time(us.rem_euclid(US_PER_DAY), out);
    if is_before_christ {
        out.push_str(" BC");
    }
}

/// Appends a universal time as local time of `zone` with the zone's offset.
pub fn format_timestamptz(us: i64, zone: &SessionZone, out: &mut String) {
    let east = zone.offset_at(us);
    format_timestamp(us.saturating_add(i64::from(east) * 1_000_000), out);
    push_offset(east, out);
}

/// Parses a timestamp in ISO form at the start of the text; returns it with the remaining text.
fn parse_iso_timestamp(text: &str) -> Option<(SqlResult<i64>, &[u8])> {
    let bytes = text.as_bytes();
    let civil = parse_iso_date(bytes)?;
    let (time_us, rest) = match &bytes[10..] {
        [] => (0, &bytes[10..]),
        [b' ' | b'T', time @ ..] => parse_iso_time(time)?,
        _ => return None,
    };
    Some((checked_days(civil, text).map(|days| i64::from(days) * US_PER_DAY + time_us), rest))
}

fn check_range(us: i64, text: &str) -> SqlResult<i64> {
    if (TIMESTAMP_US_MIN..=TIMESTAMP_US_MAX).contains(&us) {
        Ok(us)
    } else {
        Err(SqlError::new(Condition::DatetimeFieldOverflow, format!("timestamp out of range: \"{text}\"")))
    }
}
