//! Text form of `interval` in the `postgres` style: `1 year 2 mons 3 days 04:05:06.7`.

use std::fmt::Write;

use super::calendar_date::US_PER_DAY;
use super::datetime_parser::{fraction_us, invalid_datetime};
use super::time::push_fraction;
use crate::{Condition, Interval, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Fields to which an interval literal is restricted: `INTERVAL '1' YEAR`, `INTERVAL '1 2' DAY TO HOUR`. The last field
/// is the unit of a lone number, and smaller fields are truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalUnits {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    YearToMonth,
    DayToHour,
    DayToMinute,
    DayToSecond,
    HourToMinute,
    HourToSecond,
    MinuteToSecond,
}

/// Parses an interval in any of PostgreSQL's forms: verbose, `1-2 3 4:05:06`, ISO 8601, `@ 1 day ago`.
pub fn parse_interval(text: &str) -> SqlResult<Interval> {
    parse_interval_in(text, None)
}

/// Parses an interval literal restricted to `units`.
pub fn parse_interval_in(text: &str, units: Option<IntervalUnits>) -> SqlResult<Interval> {
    let trimmed = text.trim();
    let mut parts = IntervalParser { text, ..IntervalParser::default() };
    match trimmed.strip_prefix('P') {
        Some(designators) => parts.read_iso(designators)?,
        None => parts.read_words(trimmed, units)?,
    }
    Ok(truncate_to_units(parts.finish()?, units))
}

/// Appends the nonzero parts of an interval, each with its sign; `00:00:00` if all are zero.
pub fn format_interval(value: &Interval, out: &mut String) {
    let mut is_empty = true;
    let mut is_after_negative = false;
    for (count, unit) in [(value.months / 12, "year"), (value.months % 12, "mon"), (value.days, "day")] {
        if count == 0 {
            continue;
        }
        let space = if is_empty { "" } else { " " };
        let plus = if is_after_negative && 0 < count { "+" } else { "" };
        let plural = if count == 1 { "" } else { "s" };
        write!(out, "{space}{plus}{count} {unit}{plural}").expect("writing to a String cannot fail");
        is_after_negative = count < 0;
        is_empty = false;
    }
    if value.microseconds == 0 && !is_empty {
        return;
    }
    if !is_empty {
        out.push(' ');
    }
    if value.microseconds < 0 {
        out.push('-');
    } else if is_after_negative {
        out.push('+');
    }
    let us = value.microseconds.unsigned_abs();
    let seconds = us / 1_000_000;
    write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
        .expect("writing to a String cannot fail");
    push_fraction(u32::try_from(us % 1_000_000).expect("below a million"), out);
}

/// Truncates fields smaller than the last one of `units`.
fn truncate_to_units(value: Interval, units: Option<IntervalUnits>) -> Interval {
    use IntervalUnits as U;
    let Interval { months, days, microseconds } = value;
    let whole = |unit: i64| microseconds / unit * unit;
    match units {
        Some(U::Year) => Interval::new(months / 12 * 12, 0, 0),
        Some(U::Month | U::YearToMonth) => Interval::new(months, 0, 0),
        Some(U::Day) => Interval::new(months, days, 0),
        Some(U::Hour | U::DayToHour) => Interval::new(months, days, whole(3_600_000_000)),
        Some(U::Minute | U::DayToMinute | U::HourToMinute) => Interval::new(months, days, whole(60_000_000)),
        _ => value,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IntervalUnit {
    Months(i64),
    Days(i64),
    Microseconds(i64),
}

impl IntervalUnit {
    const SECOND: IntervalUnit = IntervalUnit::Microseconds(1_000_000);
    const DAY: IntervalUnit = IntervalUnit::Days(1);

    fn from_name(word: &str) -> Option<IntervalUnit> {
        Some(match word {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" | "microsecond" | "microseconds" => {
                IntervalUnit::Microseconds(1)
            }
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" | "millisecond" | "milliseconds" => {
                IntervalUnit::Microseconds(1000)
            }
            "s" | "sec" | "secs" | "second" | "seconds" => IntervalUnit::SECOND,
            "m" | "min" | "mins" | "minute" | "minutes" => IntervalUnit::Microseconds(60_000_000),
            "h" | "hr" | "hrs" | "hour" | "hours" => IntervalUnit::Microseconds(3_600_000_000),
            "d" | "day" | "days" => IntervalUnit::DAY,
            "w" | "week" | "weeks" => IntervalUnit::Days(7),
            "mon" | "mons" | "month" | "months" => IntervalUnit::Months(1),
            "y" | "yr" | "yrs" | "year" | "years" => IntervalUnit::Months(12),
            "dec" | "decs" | "decade" | "decades" => IntervalUnit::Months(120),
            "c" | "cent" | "century" | "centuries" => IntervalUnit::Months(1_200),
            "mil" | "mils" | "millennium" | "millennia" => IntervalUnit::Months(12_000),
            _ => return None,
        })
    }

    fn for_bare_number(units: Option<IntervalUnits>) -> IntervalUnit {
        use IntervalUnits as U;
        match units {
            Some(U::Year) => IntervalUnit::Months(12),
            Some(U::Month | U::YearToMonth) => IntervalUnit::Months(1),
            Some(U::Day) => IntervalUnit::DAY,
            Some(U::Hour | U::DayToHour) => IntervalUnit::Microseconds(3_600_000_000),
            Some(U::Minute | U::DayToMinute | U::HourToMinute) => IntervalUnit::Microseconds(60_000_000),
            _ => IntervalUnit::SECOND,
        }
    }
}

#[derive(Default)]
struct IntervalParser<'a> {
    text: &'a str,
    months: i64,
    days: i64,
    microseconds: i64,
    has_fields: bool,
}

/// Number in the text: sign, integer part, and the digits after the point.
struct Number<'a> {
    negative: bool,
    integer_part: i64,
    fraction: &'a str,
}

impl<'a> IntervalParser<'a> {
    fn invalid(&self) -> SqlError {
        invalid_datetime("interval", self.text)
    }

    fn field_out_of_range(&self) -> SqlError {
        SqlError::new(Condition::IntervalFieldOverflow, format!("interval field value out of range: \"{}\"", self.text))
    }

    fn finish(&self) -> SqlResult<Interval> {
        if !self.has_fields {
            return Err(self.invalid());
        }
        match (i32::try_from(self.months), i32::try_from(self.days)) {
            (Ok(months), Ok(days)) => Ok(Interval::new(months, days, self.microseconds)),
            _ => Err(self.field_out_of_range()),
        }
    }

    fn read_words(&mut self, text: &'a str, units: Option<IntervalUnits>) -> SqlResult<()> {
        let mut rest = text.strip_prefix('@').unwrap_or(text).trim_start();
        while !rest.is_empty() {
            if rest.eq_ignore_ascii_case("ago") && self.has_fields {
                let negated = (self.months.checked_neg(), self.days.checked_neg(), self.microseconds.checked_neg());
                let (Some(months), Some(days), Some(microseconds)) = negated else {
                    return Err(self.field_out_of_range());
                };
                (self.months, self.days, self.microseconds) = (months, days, microseconds);
                return Ok(());
            }
            let (sign, unsigned) = match rest.as_bytes()[0] {
                b'-' => (true, rest[1..].trim_start()),
                b'+' => (false, rest[1..].trim_start()),
                _ => (false, rest),
            };
            let end = unsigned.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(unsigned.len());
            let after = &unsigned[end..];
            rest = match after.as_bytes().first() {
                Some(b':') => self.read_clock(sign, unsigned, units)?,
                Some(b'-') if 0 < end && after[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                    self.read_years_months(sign, unsigned)?
                }
                _ => self.read_quantity(sign, unsigned, units)?,
            };
            rest = rest.trim_start();
        }
        Ok(())
    }

    /// Parses a number and its unit. The unit of a lone number is days before a time, else the literal's smallest
    /// field.
    fn read_quantity(&mut self, negative: bool, text: &'a str, units: Option<IntervalUnits>) -> SqlResult<&'a str> {
        let (number, rest) = self.read_number(negative, text)?;
        let unit_text = rest.trim_start();
        let word_end = unit_text.bytes().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(unit_text.len());
        let word = &unit_text[..word_end];
        if word.is_empty() || word.eq_ignore_ascii_case("ago") {
            let token_end = unit_text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(unit_text.len());
            let days_lead = matches!(
                units,
                Some(IntervalUnits::DayToHour | IntervalUnits::DayToMinute | IntervalUnits::DayToSecond)
            );
            let unit = if unit_text[..token_end].contains(':') || (days_lead && token_end != 0) {
                IntervalUnit::DAY
            } else {
                IntervalUnit::for_bare_number(units)
            };
            self.add_quantity(&number, unit)?;
            return Ok(unit_text);
        }
        let unit = IntervalUnit::from_name(&word.to_ascii_lowercase()).ok_or_else(|| self.invalid())?;
        self.add_quantity(&number, unit)?;
        Ok(&unit_text[word_end..])
    }

    fn read_number(&self, negative: bool, text: &'a str) -> SqlResult<(Number<'a>, &'a str)> {
        let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        let (whole, mut rest) = text.split_at(end);
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(after.len());
            (fraction, rest) = after.split_at(end);
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(self.invalid());
        }
        let whole = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| self.field_out_of_range())? };
        Ok((Number { negative, integer_part: whole, fraction }, rest))
    }

    fn add_quantity(&mut self, number: &Number, unit: IntervalUnit) -> SqlResult<()> {
        self.has_fields = true;
        let sign = if number.negative { -1 } else { 1 };
        let fraction: f64 = if number.fraction.is_empty() {
            0.0
        } else {
            format!("0.{}", number.fraction).parse().map_err(|_| self.invalid())?
        };
        let added = match unit {
            IntervalUnit::Months(size) => number
                .integer_part
                .checked_mul(size * sign)
                .and_then(|months| self.months.checked_add(months))
                .map(|months| self.months = months),
            IntervalUnit::Days(size) => number
                .integer_part
                .checked_mul(size * sign)
                .and_then(|days| self.days.checked_add(days))
                .map(|days| self.days = days),
            IntervalUnit::Microseconds(size) => {
                let whole = number.integer_part.checked_mul(size * sign);
                whole.and_then(|us| self.microseconds.checked_add(us)).map(|us| self.microseconds = us)
            }
        };
        added.ok_or_else(|| self.field_out_of_range())?;
        if fraction == 0.0 {
            return Ok(());
        }
        match unit {
            IntervalUnit::SECOND => self.add_microseconds(sign * fraction_us(number.fraction)),
            IntervalUnit::Microseconds(size) => self.add_microseconds(sign * rounded(fraction * to_f64(size))),
            IntervalUnit::Days(size) => self.add_day_fraction(fraction * to_f64(size * sign)),
            IntervalUnit::Months(1) => self.add_day_fraction(fraction * to_f64(30 * sign)),
            IntervalUnit::Months(size) => {
                self.months += sign * rounded(fraction * to_f64(size));
                Ok(())
            }
        }
    }

    fn add_day_fraction(&mut self, days: f64) -> SqlResult<()> {
        let whole = days.trunc();
        self.days += rounded(whole);
        self.add_microseconds(rounded((days - whole) * to_f64(US_PER_DAY)))
    }

    fn add_microseconds(&mut self, us: i64) -> SqlResult<()> {
        self.microseconds = self.microseconds.checked_add(us).ok_or_else(|| self.field_out_of_range())?;
        Ok(())
    }

    /// Parses a time such as `04:05` or `04:05:06.7`. `04:05` is minutes and seconds if the literal's fields end in
    /// seconds or it has a fraction.
    fn read_clock(&mut self, negative: bool, text: &'a str, units: Option<IntervalUnits>) -> SqlResult<&'a str> {
        let end =
            text.bytes().position(|byte| !byte.is_ascii_digit() && byte != b':' && byte != b'.').unwrap_or(text.len());
        let (clock, rest) = text.split_at(end);
        let parts: Vec<&str> = clock.split(':').collect();
        let (hours, minutes, seconds) = match *parts.as_slice() {
            [minutes, seconds] if seconds.contains('.') || units == Some(IntervalUnits::MinuteToSecond) => {
                ("0", minutes, seconds)
            }
            [hours, minutes] => (hours, minutes, "0"),
            [hours, minutes, seconds] => (hours, minutes, seconds),
            _ => return Err(self.invalid()),
        };
        let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let number = |part: &str| part.parse::<i64>().map_err(|_| self.invalid());
        let (hours, minutes, seconds) =
            (number(hours)?, number(minutes)?, if seconds.is_empty() { 0 } else { number(seconds)? });
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.invalid());
        }
        if 59 < minutes || 60 < seconds {
            return Err(self.field_out_of_range());
        }
        let us = hours
            .checked_mul(3_600_000_000)
            .and_then(|us| us.checked_add((minutes * 60 + seconds) * 1_000_000 + fraction_us(fraction)));
        let us = us.ok_or_else(|| self.field_out_of_range())?;
        self.has_fields = true;
        self.add_microseconds(if negative { -us } else { us })?;
        Ok(rest)
    }

    /// Parses years and months: `1-2`.
    fn read_years_months(&mut self, negative: bool, text: &'a str) -> SqlResult<&'a str> {
        let (years, rest) = text.split_once('-').ok_or_else(|| self.invalid())?;
        let end = rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (months, rest) = rest.split_at(end);
        let years: i64 = years.parse().map_err(|_| self.field_out_of_range())?;
        let months: i64 = months.parse().map_err(|_| self.field_out_of_range())?;
        if 11 < months {
            return Err(self.field_out_of_range());
        }
        let total = years
            .checked_mul(12)
            .and_then(|years| years.checked_add(months))
            .ok_or_else(|| self.field_out_of_range())?;
        self.months =
            self.months.checked_add(if negative { -total } else { total }).ok_or_else(|| self.field_out_of_range())?;
        self.has_fields = true;
        Ok(rest)
    }

    /// Parses the part after the `P` of ISO 8601: `1Y2M3DT4H5M6S` or `0001-02-03T04:05:06`.
    fn read_iso(&mut self, text: &'a str) -> SqlResult<()> {
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        if 4 < date.len() && date.as_bytes()[4] == b'-' {
            let fields: Vec<&str> = date.split('-').collect();
            for (field, unit) in
                fields.iter().zip([IntervalUnit::Months(12), IntervalUnit::Months(1), IntervalUnit::DAY])
            {
                let (number, rest) = self.read_number(false, field)?;
                if !rest.is_empty() {
                    return Err(self.invalid());
                }
                self.add_quantity(&number, unit)?;
            }
            return match time {
                Some(time) if self.read_clock(false, time, None)?.is_empty() => Ok(()),
                None => Ok(()),
                Some(_) => Err(self.invalid()),
            };
        }
        self.read_designators(date, |designator| match designator {
            b'Y' => Some(IntervalUnit::Months(12)),
            b'M' => Some(IntervalUnit::Months(1)),
            b'W' => Some(IntervalUnit::Days(7)),
            b'D' => Some(IntervalUnit::DAY),
            _ => None,
        })?;
        match time {
            None => Ok(()),
            Some("") => Err(self.invalid()),
            Some(time) => self.read_designators(time, |designator| match designator {
                b'H' => Some(IntervalUnit::Microseconds(3_600_000_000)),
                b'M' => Some(IntervalUnit::Microseconds(60_000_000)),
                b'S' => Some(IntervalUnit::SECOND),
                _ => None,
            }),
        }
    }

    fn read_designators(&mut self, text: &'a str, unit_of: impl Fn(u8) -> Option<IntervalUnit>) -> SqlResult<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let (negative, unsigned) = match rest.as_bytes()[0] {
                b'-' => (true, &rest[1..]),
                b'+' => (false, &rest[1..]),
                _ => (false, rest),
            };
            let (number, after) = self.read_number(negative, unsigned)?;
            let unit = after.bytes().next().and_then(&unit_of).ok_or_else(|| self.invalid())?;
            self.add_quantity(&number, unit)?;
            rest = &after[1..];
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "unit sizes are far below 2^53")]
fn to_f64(value: i64) -> f64 {
    value as f64
}

#[expect(clippy::cast_possible_truncation, reason = "fractions of a unit are small")]
fn rounded(value: f64) -> i64 {
    value.round_ties_even() as i64
}
