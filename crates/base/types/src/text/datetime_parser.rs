//! Parser of free-form dates and times: words, numbers and punctuation in the orders that PostgreSQL accepts.
//!
//! `date.rs`, `time.rs` and `timestamp.rs` parse ISO form themselves and use this module for everything else.

use serde::{Deserialize, Serialize};

use super::calendar_date::{CivilDate, days_in_month};
use crate::time_zone::{abbreviation_offset, parse_offset};
use crate::{Condition, SessionZone, SqlError, SqlResult};

/// Order of day, month and year in dates such as `01/02/2024`: the second part of `DateStyle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum DateOrder {
    #[default]
    MonthDayYear,
    DayMonthYear,
    YearMonthDay,
}

/// Session settings on which the meaning of a date's text depends.
#[derive(Debug, Clone, Copy)]
pub struct DateContext {
    pub order: DateOrder,
    pub zone: SessionZone,
    /// Current time, in microseconds since 1970-01-01 UTC, for `now`, `today` and similar words; `None` rejects them.
    pub now_us: Option<i64>,
}

impl Default for DateContext {
    fn default() -> Self {
        Self { order: DateOrder::default(), zone: SessionZone::UTC, now_us: None }
    }
}

/// Parsed fields of a date and time.
#[derive(Debug, Default)]
pub(super) struct ParsedDateTime {
    pub(super) date: Option<CivilDate>,
    /// Time of day, in microseconds since midnight.
    pub(super) time_us: Option<i64>,
    pub(super) zone: Option<SessionZone>,
    /// Point in time named by a word: `epoch`, `now`, `today`.
    pub(super) instant: Option<NamedInstant>,
}

/// Point in time named by a word.
#[derive(Debug, Clone, Copy)]
pub(super) enum NamedInstant {
    /// Universal time, in microseconds since 1970-01-01.
    Utc(i64),
    /// Midnight, this many days from today.
    DaysFromToday(i64),
}

/// Parses date and time fields in any order. `type_name` is for error messages.
pub(super) fn parse_datetime(text: &str, type_name: &str, context: &DateContext) -> SqlResult<ParsedDateTime> {
    let mut reader = DateTimeParser {
        text,
        remaining: text,
        type_name,
        context,
        parsed: ParsedDateTime::default(),
        date_numbers: Vec::new(),
        month: None,
        expects_time: false,
    };
    reader.parse()?;
    Ok(reader.parsed)
}

/// Returns PostgreSQL's `22007` for malformed input.
pub(super) fn invalid_datetime(type_name: &str, text: &str) -> SqlError {
    SqlError::new(Condition::InvalidDatetimeFormat, format!("invalid input syntax for type {type_name}: \"{text}\""))
}

/// Returns PostgreSQL's `22008` for a field out of range.
pub(super) fn out_of_range(text: &str) -> SqlError {
    SqlError::new(Condition::DatetimeFieldOverflow, format!("date/time field value out of range: \"{text}\""))
}

struct DateTimeParser<'a> {
    text: &'a str,
    remaining: &'a str,
    type_name: &'a str,
    context: &'a DateContext,
    parsed: ParsedDateTime,
    /// Numbers beside a month's name: day and year.
    date_numbers: Vec<(i32, usize)>,
    month: Option<u32>,
    expects_time: bool,
}

impl<'a> DateTimeParser<'a> {
    fn parse(&mut self) -> SqlResult<()> {
        let mut is_empty = true;
        loop {
            self.remaining = self.remaining.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
            let Some(first) = self.remaining.bytes().next() else { break };
            is_empty = false;
            match first {
                b'0'..=b'9' => self.read_number()?,
                b'a'..=b'z' | b'A'..=b'Z' => self.read_word()?,
                b'+' | b'-' => self.read_utc_offset()?,
                _ => return Err(self.invalid()),
            }
        }
        if is_empty {
            return Err(self.invalid());
        }
        self.assemble_named_month()
    }

    fn invalid(&self) -> SqlError {
        invalid_datetime(self.type_name, self.text)
    }

    fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let end = self.remaining.bytes().position(|byte| !accept(byte)).unwrap_or(self.remaining.len());
        let (taken, rest) = self.remaining.split_at(end);
        self.remaining = rest;
        taken
    }

    fn read_number(&mut self) -> SqlResult<()> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        match self.remaining.bytes().next() {
            Some(b':') => return self.read_clock_time(digits),
            Some(separator @ (b'-' | b'/' | b'.')) if self.starts_date(separator) => {
                return self.read_separated_date(digits, separator);
            }
            _ => {}
        }
        let has_date = self.parsed.date.is_some() || 2 <= self.date_numbers.len();
        if self.expects_time || (has_date && matches!(digits.len(), 4 | 6)) {
            return self.read_packed_time(digits);
        }
        match digits.len() {
            8 if self.month.is_none() && !has_date => {
                self.set_date(parse_digits(&digits[..4]), parse_digits(&digits[4..6]), parse_digits(&digits[6..]), 4)
            }
            6 if self.month.is_none() && !has_date => {
                self.set_date(parse_digits(&digits[..2]), parse_digits(&digits[2..4]), parse_digits(&digits[4..]), 2)
            }
            length if length <= 6 => {
                self.date_numbers.push((parse_digits(digits), length));
                Ok(())
            }
            _ => Err(self.invalid()),
        }
    }

    /// Whether a digit or a month's name follows the separator: then it is a date, not a number followed by an offset.
    fn starts_date(&self, separator: u8) -> bool {
        if self.parsed.date.is_some() || self.month.is_some() {
            return false;
        }
        let after = self.remaining.as_bytes().get(1).copied().unwrap_or_default();
        after.is_ascii_digit() || (after.is_ascii_alphabetic() && separator != b'.')
    }

    fn read_separated_date(&mut self, first: &str, separator: u8) -> SqlResult<()> {
        self.remaining = &self.remaining[1..];
        let second = self.take_while(|byte| byte.is_ascii_alphanumeric());
        // Letters must be a month's name; `2024-01T10:00` is malformed.
        let second_month = if second.bytes().all(|byte| byte.is_ascii_digit()) {
            None
        } else {
            Some(month_named(second).ok_or_else(|| self.invalid())?)
        };
        if self.remaining.bytes().next() != Some(separator) {
            return Err(self.invalid());
        }
        self.remaining = &self.remaining[1..];
        let third = self.take_while(|byte| byte.is_ascii_digit());
        if third.is_empty() || 6 < first.len() || 6 < third.len() || 4 < second.len() && second_month.is_none() {
            return Err(self.invalid());
        }
        let (a, c) = (parse_digits(first), parse_digits(third));
        if let Some(month) = second_month {
            let month = i32::try_from(month).expect("1 to 12");
            return if 2 < first.len() || (third.len() <= 2 && self.context.order == DateOrder::YearMonthDay) {
                self.set_date(a, month, c, first.len())
            } else {
                self.set_date(c, month, a, third.len())
            };
        }
        let b = parse_digits(second);
        if 2 < first.len() {
            return self.set_date(a, b, c, first.len());
        }
        match self.context.order {
            DateOrder::MonthDayYear => self.set_date(c, a, b, third.len()),
            DateOrder::DayMonthYear => self.set_date(c, b, a, third.len()),
            DateOrder::YearMonthDay => self.set_date(a, b, c, first.len()),
        }
    }

    /// Sets the date. A year of one or two digits is in 1970 to 2069.
    fn set_date(&mut self, year: i32, month: i32, day: i32, year_digits: usize) -> SqlResult<()> {
        if self.parsed.date.is_some() {
            return Err(self.invalid());
        }
        let year = match (year, year_digits) {
            (0..70, 0..=2) => year + 2000,
            (70..100, 0..=2) => year + 1900,
            _ => year,
        };
        let field_error = || out_of_range(self.text).with_hint("Perhaps you need a different \"datestyle\" setting.");
        let month = u32::try_from(month).ok().filter(|month| (1..=12).contains(month)).ok_or_else(field_error)?;
        let day = u32::try_from(day).ok().filter(|day| (1..=31).contains(day)).ok_or_else(field_error)?;
        if year == 0 || days_in_month(year, month) < day {
            return Err(out_of_range(self.text));
        }
        if 9999 < year {
            return Err(SqlError::new(
                Condition::DatetimeFieldOverflow,
                format!("date out of range: \"{}\"", self.text),
            )
            .with_detail("Dates go from 0001-01-01 to 9999-12-31."));
        }
        self.parsed.date = Some(CivilDate { year, month, day });
        Ok(())
    }

    fn read_clock_time(&mut self, hours: &str) -> SqlResult<()> {
        let rest = self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
        let mut parts = rest[1..].split(':');
        let minutes = parts.next().unwrap_or_default();
        let seconds = parts.next().unwrap_or("0");
        if parts.next().is_some() || hours.len() > 2 {
            return Err(self.invalid());
        }
        // With a fraction, two fields are minutes and seconds.
        let (hours, minutes, seconds) =
            if minutes.contains('.') { ("0", hours, minutes) } else { (hours, minutes, seconds) };
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let is_number = |part: &str, empty_allowed: bool| {
            (empty_allowed || !part.is_empty()) && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(minutes, false) || !is_number(whole, true) || !fraction.bytes().all(|byte| byte.is_ascii_digit())
        {
            return Err(self.invalid());
        }
        self.set_time(parse_digits(hours), parse_digits(minutes), parse_digits(whole), fraction)
    }

    fn read_packed_time(&mut self, digits: &str) -> SqlResult<()> {
        let mut fraction = "";
        if self.remaining.starts_with('.') {
            self.remaining = &self.remaining[1..];
            fraction = self.take_while(|byte| byte.is_ascii_digit());
        }
        match digits.len() {
            2 => self.set_time(parse_digits(digits), 0, 0, fraction),
            4 => self.set_time(parse_digits(&digits[..2]), parse_digits(&digits[2..]), 0, fraction),
            6 => self.set_time(
                parse_digits(&digits[..2]),
                parse_digits(&digits[2..4]),
                parse_digits(&digits[4..]),
                fraction,
            ),
            _ => Err(self.invalid()),
        }
    }

    fn set_time(&mut self, hours: i32, minutes: i32, seconds: i32, fraction: &str) -> SqlResult<()> {
        if self.parsed.time_us.is_some() {
            return Err(self.invalid());
        }
        self.expects_time = false;
        self.parsed.time_us =
            Some(time_us(hours, minutes, seconds, fraction_us(fraction)).ok_or_else(|| out_of_range(self.text))?);
        Ok(())
    }

    fn read_utc_offset(&mut self) -> SqlResult<()> {
        if self.parsed.time_us.is_none() || self.parsed.zone.is_some() {
            return Err(self.invalid());
        }
        let (sign, rest) = self.remaining.split_at(1);
        self.remaining = rest;
        let digits = self.take_while(|byte| byte.is_ascii_digit() || byte == b':');
        let mut text = sign.to_owned();
        text.push_str(digits);
        let out_of_range = || {
            SqlError::new(Condition::InvalidTimeZone, format!("time zone displacement out of range: \"{}\"", self.text))
        };
        let seconds = parse_offset(&text).ok_or_else(out_of_range)?;
        self.set_zone(SessionZone::Fixed(seconds))
    }

    fn set_zone(&mut self, zone: SessionZone) -> SqlResult<()> {
        if self.parsed.zone.is_some() {
            return Err(self.invalid());
        }
        self.parsed.zone = Some(zone);
        Ok(())
    }

    fn read_word(&mut self) -> SqlResult<()> {
        let word = self.take_while(|byte| byte.is_ascii_alphabetic());
        let lower = word.to_ascii_lowercase();
        // `Jan-31-2024`
        if let Some(month) = month_named(word) {
            if self.month.replace(month).is_some() {
                return Err(self.invalid());
            }
            if self.remaining.as_bytes().first() == Some(&b'-')
                && self.remaining.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
            {
                self.remaining = &self.remaining[1..];
                let day = self.take_while(|byte| byte.is_ascii_digit());
                self.date_numbers.push((parse_digits(day.get(..6).unwrap_or(day)), day.len()));
                if let Some(rest) = self.remaining.strip_prefix('-') {
                    self.remaining = rest;
                }
            }
            return Ok(());
        }
        match lower.as_str() {
            "t" => {
                self.expects_time = true;
                return Ok(());
            }
            "am" | "pm" => {
                let time = self.parsed.time_us.ok_or_else(|| self.invalid())?;
                if 13 * HOUR_US <= time {
                    return Err(out_of_range(self.text));
                }
                let is_twelve = 12 * HOUR_US <= time;
                self.parsed.time_us = Some(match (lower.as_str(), is_twelve) {
                    ("am", true) => time - 12 * HOUR_US,
                    ("pm", false) => time + 12 * HOUR_US,
                    _ => time,
                });
                return Ok(());
            }
            "ad" | "at" | "on" => return Ok(()),
            "bc" => {
                return Err(SqlError::new(
                    Condition::DatetimeFieldOverflow,
                    format!("date out of range: \"{}\"", self.text),
                )
                .with_detail("Dates go from 0001-01-01 to 9999-12-31."));
            }
            "infinity" => {
                return Err(SqlError::unsupported(format_args!(
                    "the infinite value \"{}\" of type {}",
                    self.text, self.type_name
                )));
            }
            "epoch" => return self.set_instant(NamedInstant::Utc(0)),
            "now" => {
                let now = self.require_now(word)?;
                return self.set_instant(NamedInstant::Utc(now));
            }
            "today" => return self.set_instant(NamedInstant::DaysFromToday(0)),
            "tomorrow" => return self.set_instant(NamedInstant::DaysFromToday(1)),
            "yesterday" => return self.set_instant(NamedInstant::DaysFromToday(-1)),
            "allballs" => {
                self.parsed.time_us = Some(0);
                return Ok(());
            }
            _ => {}
        }
        if WEEKDAYS.iter().any(|day| 3 <= lower.len() && day.starts_with(lower.as_str()))
            || matches!(lower.as_str(), "tues" | "weds" | "thur" | "thurs")
        {
            return Ok(());
        }
        let rest_of_name =
            self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'+' | b'-'));
        if rest_of_name.is_empty()
            && let Some(east) = abbreviation_offset(word)
        {
            return self.set_zone(SessionZone::Fixed(east));
        }
        let name = [word, rest_of_name].concat();
        match SessionZone::parse_in_value(&name) {
            Ok(zone) => self.set_zone(zone),
            Err(error) if rest_of_name.contains('/') => Err(error),
            Err(_) => Err(self.invalid()),
        }
    }

    fn require_now(&self, word: &str) -> SqlResult<i64> {
        self.context
            .now_us
            .ok_or_else(|| SqlError::unsupported(format_args!("the date/time word \"{word}\" in a stored value")))
    }

    fn set_instant(&mut self, instant: NamedInstant) -> SqlResult<()> {
        if let NamedInstant::DaysFromToday(_) = instant {
            self.require_now("today")?;
        }
        self.parsed.instant = Some(instant);
        Ok(())
    }

    /// Assembles a date with a month's name: `Jan 31 2024`, `31 Jan 2024`, `2024 Jan 31`.
    fn assemble_named_month(&mut self) -> SqlResult<()> {
        let Some(month) = self.month else {
            return if self.date_numbers.is_empty() { Ok(()) } else { Err(self.invalid()) };
        };
        let month = i32::try_from(month).expect("1 to 12");
        match *self.date_numbers.as_slice() {
            [(year, digits @ 3..), (day, _)] => self.set_date(year, month, day, digits),
            [(day, _), (year, digits)] => self.set_date(year, month, day, digits),
            _ => Err(self.invalid()),
        }
    }
}

const HOUR_US: i64 = 3_600_000_000;
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn month_named(word: &str) -> Option<u32> {
    if word.len() < 3 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let position = MONTHS
        .iter()
        .position(|month| lower == *month || lower == month[..3] || (lower == "sept" && *month == "september"))?;
    u32::try_from(position + 1).ok()
}

fn parse_digits(digits: &str) -> i32 {
    digits.bytes().fold(0, |value, digit| value * 10 + i32::from(digit.wrapping_sub(b'0')))
}

/// Returns the microseconds of fractional digits, rounded half to even as PostgreSQL's `rint` does.
pub(super) fn fraction_us(digits: &str) -> i64 {
    if digits.len() <= 6 {
        let value = digits.bytes().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        return value * 10_i64.pow(u32::try_from(6 - digits.len()).expect("at most 6"));
    }
    let kept = fraction_us(&digits[..6]);
    let rest = &digits.as_bytes()[6..];
    let is_tie = rest[0] == b'5' && rest[1..].iter().all(|digit| *digit == b'0');
    let rounds_up = if is_tie { kept % 2 == 1 } else { b'5' <= rest[0] };
    kept + i64::from(rounds_up)
}

/// Returns the microseconds since midnight; 24:00:00 and a leap second are allowed.
pub(super) fn time_us(hours: i32, minutes: i32, seconds: i32, microseconds: i64) -> Option<i64> {
    let is_valid = minutes < 60 && (seconds < 60 || (seconds == 60 && microseconds == 0)) && hours <= 24;
    let total = (i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds)) * 1_000_000 + microseconds;
    (is_valid && total <= 24 * HOUR_US).then_some(total)
}
