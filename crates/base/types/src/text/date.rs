//! Text form of `date`, whose values are days since 1970-01-01: `2024-01-31`.

use super::calendar_date::{CivilDate, civil_from_days, days_from_civil, days_in_month};
use super::datetime_parser::{NamedInstant, invalid_datetime, out_of_range, parse_datetime};
use super::{DateContext, US_PER_DAY};
use crate::{SessionZone, SqlResult};

#[cfg(test)]
mod tests;

/// Parses a date; ambiguous ones are month, day, year.
pub fn parse_date(text: &str) -> SqlResult<i32> {
    match parse_iso_date(text.as_bytes()) {
        Some(civil) if text.len() == 10 => checked_days(civil, text),
        _ => parse_date_in(text, &DateContext::default()),
    }
}

/// Parses a date in a session's date order, ignoring a time after it. `22007` if it is malformed, `22008` if the day
/// does not exist.
pub fn parse_date_in(text: &str, context: &DateContext) -> SqlResult<i32> {
    if let Some(civil) = parse_iso_date(text.as_bytes())
        && text.len() == 10
    {
        return checked_days(civil, text);
    }
    // Some drivers append a zone to dates, which does not change the day.
    if let Some(civil) = parse_iso_date(text.as_bytes())
        && is_utc_offset(&text.as_bytes()[10..])
    {
        return checked_days(civil, text);
    }
    let written = parse_datetime(text, "date", context)?;
    match (written.date, written.instant) {
        (Some(civil), None) => Ok(days_from_civil(civil.year, civil.month, civil.day)),
        (None, Some(instant)) => Ok(resolve_day(instant, context)),
        _ => Err(invalid_datetime("date", text)),
    }
}

/// Whether `bytes` are only an offset from UTC, such as ` +02` or `-05:30`.
fn is_utc_offset(bytes: &[u8]) -> bool {
    let [b'+' | b'-', digits @ ..] = bytes.trim_ascii() else { return false };
    let is_pair = |part: &[u8]| matches!(part, [a, b] if a.is_ascii_digit() && b.is_ascii_digit());
    digits.split(|byte| *byte == b':').take(4).all(is_pair) && digits.len() <= 8
}

/// Appends `YYYY-MM-DD`.
pub fn format_date(days: i32, out: &mut String) {
    let civil = civil_from_days(days);
    if !(1..=9999).contains(&civil.year) {
        // Values from external files may be outside of Kiln's range: they are printed as PostgreSQL prints them.
        let (year, is_before) = if civil.year < 1 { (1 - civil.year, true) } else { (civil.year, false) };
        out.push_str(&format!("{year:04}-{:02}-{:02}{}", civil.month, civil.day, if is_before { " BC" } else { "" }));
        return;
    }
    let year = u32::try_from(civil.year).expect("the year is 1 to 9999 in this branch");
    push_two_digits(year / 100, out);
    push_two_digits(year % 100, out);
    out.push('-');
    push_two_digits(civil.month, out);
    out.push('-');
    push_two_digits(civil.day, out);
}

pub(super) fn push_two_digits(value: u32, out: &mut String) {
    out.push(char::from(b'0' + u8::try_from(value / 10 % 10).expect("a digit is below 10")));
    out.push(char::from(b'0' + u8::try_from(value % 10).expect("a digit is below 10")));
}

/// Parses a date in the form `YYYY-MM-DD` at the start of `bytes`; month and day are not checked.
pub(super) fn parse_iso_date(bytes: &[u8]) -> Option<CivilDate> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, ..] = bytes else { return None };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let year = digit(y1)? * 1000 + digit(y2)? * 100 + digit(y3)? * 10 + digit(y4)?;
    let (month, day) = (digit(m1)? * 10 + digit(m2)?, digit(d1)? * 10 + digit(d2)?);
    Some(CivilDate { year: i32::try_from(year).expect("four digits fit"), month, day })
}

pub(super) fn checked_days(civil: CivilDate, text: &str) -> SqlResult<i32> {
    let CivilDate { year, month, day } = civil;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(out_of_range(text).with_hint("Perhaps you need a different \"datestyle\" setting."));
    }
    if year == 0 || days_in_month(year, month) < day {
        return Err(out_of_range(text));
    }
    Ok(days_from_civil(year, month, day))
}

/// Returns the day that a word denotes in the session's time zone.
pub(super) fn resolve_day(instant: NamedInstant, context: &DateContext) -> i32 {
    let local_day = |us: i64, zone: &SessionZone| zone.to_local(us).div_euclid(US_PER_DAY);
    let day = match instant {
        NamedInstant::Utc(0) => 0,
        NamedInstant::Utc(us) => local_day(us, &context.zone),
        NamedInstant::DaysFromToday(away) => local_day(context.now_us.unwrap_or_default(), &context.zone) + away,
    };
    i32::try_from(day).unwrap_or_default()
}
