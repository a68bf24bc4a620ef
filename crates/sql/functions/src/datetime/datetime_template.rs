//! Templates of dates and times: `to_char`, `to_date`, `to_timestamp`.

use std::fmt::Write;

use arrow::array::ArrayRef;
use arrow::datatypes::{Date32Type, IntervalMonthDayNanoType, TimestampMicrosecondType};
use types::text::{US_PER_DAY, civil_from_days, days_from_civil, days_in_month};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::extract_field::iso_week;
use crate::arithmetic::interval_from_arrow;
use crate::call::Call;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// Template patterns; a pattern comes before its prefixes. Case matters only for patterns that print words.
const PATTERNS: &[&str] = &[
    "MONTH", "Month", "month", "HH24", "HH12", "SSSSS", "SSSS", "Y,YYY", "YYYY", "IYYY", "IDDD", "YYY", "IYY", "DAY",
    "Day", "day", "DDD", "MON", "Mon", "mon", "TZH", "TZM", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "A.M.", "P.M.",
    "a.m.", "p.m.", "A.D.", "B.C.", "a.d.", "b.c.", "YY", "IY", "HH", "MI", "SS", "MS", "US", "MM", "DD", "ID", "DY",
    "Dy", "dy", "WW", "IW", "CC", "RM", "rm", "TZ", "tz", "OF", "AM", "PM", "am", "pm", "AD", "BC", "ad", "bc", "Y",
    "I", "D", "W", "Q", "J",
];

/// Element of a parsed template.
#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Pattern { name: &'static str, fill: bool, suffix: Option<bool> },
    Literal(String),
}

fn parse_template(template: &str) -> SqlResult<Vec<TemplatePart>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            pieces.push(TemplatePart::Literal(quoted[..end].to_owned()));
            rest = quoted.get(end + 1..).unwrap_or_default();
            continue;
        }
        let mut after = rest;
        let mut fill = true;
        loop {
            let upper = after.get(..2).unwrap_or_default();
            if upper.eq_ignore_ascii_case("FM") {
                fill = false;
                after = &after[2..];
            } else if upper == "FX" || upper == "TM" {
                after = &after[2..];
            } else {
                break;
            }
        }
        let is_word =
            |name: &str| name.bytes().any(|byte| byte.is_ascii_lowercase()) || CASE_SENSITIVE_PATTERNS.contains(&name);
        let found = PATTERNS.iter().copied().find(|name| after.starts_with(name)).or_else(|| {
            PATTERNS.iter().copied().find(|name| {
                !is_word(name) && after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
            })
        });
        if let Some(name) = found {
            rest = &after[name.len()..];
            let suffix = match rest.get(..2) {
                Some("TH") => Some(true),
                Some("th") => Some(false),
                _ => None,
            };
            if suffix.is_some() {
                rest = &rest[2..];
            }
            pieces.push(TemplatePart::Pattern { name, fill, suffix });
            continue;
        }
        pieces.push(TemplatePart::Literal(first.to_string()));
        rest = &rest[first.len_utf8()..];
    }
    Ok(pieces)
}

/// Patterns whose case determines the case of their output.
const CASE_SENSITIVE_PATTERNS: &[&str] =
    &["MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.", "RM", "TZ"];

fn ordinal_suffix(number: i64) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// Date and time to be formatted.
struct DateTime {
    days: i32,
    time: i64,
    /// Zone abbreviation and offset in seconds east of UTC, for timestamps with time zone.
    zone: Option<(String, i32)>,
}

impl DateTime {
    fn number(&self, name: &str) -> Option<(i64, usize)> {
        let civil = civil_from_days(self.days);
        let year = i64::from(civil.year);
        let (hour, day_of_year) =
            (self.time / 3_600_000_000, i64::from(self.days - days_from_civil(civil.year, 1, 1)) + 1);
        let us = self.time % 1_000_000;
        let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
        let (iso_year, iso_number) = iso_week(self.days);
        let iso_year = i64::from(iso_year);
        let weekday = (i64::from(self.days) + 4).rem_euclid(7);
        Some(match name {
            "YYYY" => (year, 4),
            "YYY" => (year % 1000, 3),
            "YY" => (year % 100, 2),
            "Y" => (year % 10, 1),
            "IYYY" => (iso_year, 4),
            "IYY" => (iso_year % 1000, 3),
            "IY" => (iso_year % 100, 2),
            "I" => (iso_year % 10, 1),
            "Q" => (i64::from(civil.month - 1) / 3 + 1, 1),
            "MM" => (civil.month.into(), 2),
            "DD" => (civil.day.into(), 2),
            "DDD" => (day_of_year, 3),
            "IDDD" => ((iso_number - 1) * 7 + (weekday + 6) % 7 + 1, 3),
            "D" => (weekday + 1, 1),
            "ID" => ((weekday + 6) % 7 + 1, 1),
            "WW" => ((day_of_year - 1) / 7 + 1, 2),
            "IW" => (iso_number, 2),
            "W" => (i64::from(civil.day - 1) / 7 + 1, 1),
            "CC" => ((year + 99) / 100, 2),
            "J" => (i64::from(self.days) + 2_440_588, 1),
            "HH24" => (hour, 2),
            "HH12" | "HH" => (hour12, 2),
            "MI" => (self.time / 60_000_000 % 60, 2),
            "SS" => (self.time / 1_000_000 % 60, 2),
            "SSSS" | "SSSSS" => (self.time / 1_000_000, 1),
            "MS" => (us / 1_000, 3),
            "US" => (us, 6),
            "FF1" => (us / 100_000, 1),
            "FF2" => (us / 10_000, 2),
            "FF3" => (us / 1_000, 3),
            "FF4" => (us / 100, 4),
            "FF5" => (us / 10, 5),
            "FF6" => (us, 6),
            _ => return None,
        })
    }

    fn write(&self, name: &str, fill: bool, out: &mut String) -> SqlResult<()> {
        let civil = civil_from_days(self.days);
        let month = usize::try_from(civil.month - 1).expect("0 to 11");
        let weekday = usize::try_from((i64::from(self.days) + 4).rem_euclid(7)).expect("0 to 6");
        let is_morning = self.time < 43_200_000_000;
        let mut word = |text: String, width: usize| {
            if fill {
                write!(out, "{text:<width$}").expect("writing to a String cannot fail")
            } else {
                out.push_str(&text)
            }
        };
        match name {
            "MONTH" => word(MONTHS[month].to_uppercase(), 9),
            "Month" => word(MONTHS[month].to_owned(), 9),
            "month" => word(MONTHS[month].to_lowercase(), 9),
            "MON" => out.push_str(&MONTHS[month][..3].to_uppercase()),
            "Mon" => out.push_str(&MONTHS[month][..3]),
            "mon" => out.push_str(&MONTHS[month][..3].to_lowercase()),
            "DAY" => word(DAYS[weekday].to_uppercase(), 9),
            "Day" => word(DAYS[weekday].to_owned(), 9),
            "day" => word(DAYS[weekday].to_lowercase(), 9),
            "DY" => out.push_str(&DAYS[weekday][..3].to_uppercase()),
            "Dy" => out.push_str(&DAYS[weekday][..3]),
            "dy" => out.push_str(&DAYS[weekday][..3].to_lowercase()),
            "RM" => word(ROMAN[month].to_owned(), 4),
            "rm" => word(ROMAN[month].to_lowercase(), 4),
            "AM" | "PM" => out.push_str(if is_morning { "AM" } else { "PM" }),
            "am" | "pm" => out.push_str(if is_morning { "am" } else { "pm" }),
            "A.M." | "P.M." => out.push_str(if is_morning { "A.M." } else { "P.M." }),
            "a.m." | "p.m." => out.push_str(if is_morning { "a.m." } else { "p.m." }),
            "AD" | "BC" => out.push_str("AD"),
            "ad" | "bc" => out.push_str("ad"),
            "A.D." | "B.C." => out.push_str("A.D."),
            "a.d." | "b.c." => out.push_str("a.d."),
            "Y,YYY" => {
                write!(out, "{},{:03}", civil.year / 1000, civil.year % 1000).expect("writing to a String cannot fail")
            }
            "TZ" => out.push_str(&self.zone.as_ref().map(|(name, _)| name.to_uppercase()).unwrap_or_default()),
            "tz" => out.push_str(&self.zone.as_ref().map(|(name, _)| name.to_lowercase()).unwrap_or_default()),
            "OF" => {
                if let Some((_, east)) = &self.zone {
                    types::time_zone::push_offset(*east, out);
                } else {
                    out.push_str("+00");
                }
            }
            "TZH" | "TZM" => {
                let east = self.zone.as_ref().map_or(0, |(_, east)| *east);
                if name == "TZH" {
                    write!(out, "{}{:02}", if east < 0 { '-' } else { '+' }, east.abs() / 3600)
                        .expect("writing to a String cannot fail");
                } else {
                    write!(out, "{:02}", east.abs() / 60 % 60).expect("writing to a String cannot fail");
                }
            }
            other => return Err(SqlError::unsupported(format_args!("the template pattern \"{other}\""))),
        }
        Ok(())
    }

    fn fill(&self, pieces: &[TemplatePart], out: &mut String) -> SqlResult<()> {
        for piece in pieces {
            match piece {
                TemplatePart::Literal(text) => out.push_str(text),
                TemplatePart::Pattern { name, fill, suffix } => match self.number(name) {
                    Some((number, width)) => {
                        let width = if *fill { width } else { 0 };
                        write!(out, "{number:0width$}").expect("writing to a String cannot fail");
                        match suffix {
                            Some(true) => out.push_str(&ordinal_suffix(number).to_uppercase()),
                            Some(false) => out.push_str(ordinal_suffix(number)),
                            None => {}
                        }
                    }
                    None => self.write(name, *fill, out)?,
                },
            }
        }
        Ok(())
    }
}

/// Cache of the last parsed template.
#[derive(Default)]
struct TemplateCache {
    cached: Option<(String, Vec<TemplatePart>)>,
}

impl TemplateCache {
    fn get(&mut self, template: &str) -> SqlResult<&[TemplatePart]> {
        if self.cached.as_ref().is_none_or(|(kept, _)| kept != template) {
            self.cached = Some((template.to_owned(), parse_template(template)?));
        }
        Ok(self.cached.as_ref().map(|(_, pieces)| pieces.as_slice()).unwrap_or_default())
    }
}

pub(super) fn to_char(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (values, templates) = (call.column::<TimestampMicrosecondType>(0), call.text(1));
    let zone = (call.argument_types[0] == SqlType::TimestampTz).then_some(call.session.zone);
    let mut template = TemplateCache::default();
    call.build_texts(|row, out| {
        let (Some(us), Some(text)) = (values.get(row), templates.get(row)) else { return Ok(None) };
        let local = zone.map_or(us, |zone| zone.to_local(us));
        let days = i32::try_from(local.div_euclid(US_PER_DAY)).expect("64-bit microseconds span 32-bit days");
        let zone = zone.map(|zone| (zone.abbreviation_at(us), zone.offset_at(us)));
        DateTime { days, time: local.rem_euclid(US_PER_DAY), zone }.fill(template.get(text)?, out)?;
        Ok(Some(()))
    })
}

/// Formats an interval; only patterns of interval fields are supported.
pub(super) fn interval_to_char(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (values, templates) = (call.column::<IntervalMonthDayNanoType>(0), call.text(1));
    let mut template = TemplateCache::default();
    call.build_texts(|row, out| {
        let (Some(span), Some(text)) = (values.get(row), templates.get(row)) else { return Ok(None) };
        let span = interval_from_arrow(span);
        let us = span.microseconds;
        for piece in template.get(text)? {
            let (name, fill) = match piece {
                TemplatePart::Literal(text) => {
                    out.push_str(text);
                    continue;
                }
                TemplatePart::Pattern { name, fill, .. } => (*name, *fill),
            };
            let (number, width) = match name {
                "YYYY" => (i64::from(span.months / 12), 4),
                "MM" => (i64::from(span.months % 12), 2),
                "DD" => (span.days.into(), 2),
                "HH24" => (us / 3_600_000_000, 2),
                "HH12" | "HH" => (if us / 3_600_000_000 % 12 == 0 { 12 } else { us / 3_600_000_000 % 12 }, 2),
                "MI" => (us / 60_000_000 % 60, 2),
                "SS" => (us / 1_000_000 % 60, 2),
                "MS" => (us / 1_000 % 1_000, 3),
                "US" => (us % 1_000_000, 6),
                "SSSS" | "SSSSS" => (us / 1_000_000, 1),
                other => {
                    return Err(SqlError::unsupported(format_args!("the template pattern \"{other}\" for intervals")));
                }
            };
            let width = if fill { width } else { 0 };
            write!(out, "{number:0width$}").expect("writing to a String cannot fail");
        }
        Ok(Some(()))
    })
}

/// Date and time fields parsed by a template.
#[derive(Default)]
struct ParsedDateTime {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<i32>,
    hour: i64,
    minute: i64,
    second: i64,
    microsecond: i64,
    is_twelve_hour: bool,
    is_afternoon: Option<bool>,
    offset_seconds_east: Option<i32>,
    julian: Option<i32>,
}

fn invalid(text: &str, name: &str) -> SqlError {
    SqlError::new(Condition::InvalidDatetimeFormat, format!("invalid value \"{text}\" for \"{name}\""))
}

fn match_name_prefix(rest: &str, words: &[&str], is_short: bool) -> Option<(usize, usize)> {
    words.iter().enumerate().find_map(|(index, word)| {
        let word = if is_short { &word[..3] } else { word };
        rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)).then_some((index, word.len()))
    })
}

impl ParsedDateTime {
    fn parse(text: &str, pieces: &[TemplatePart]) -> SqlResult<Self> {
        let mut read = Self::default();
        let mut rest = text.trim_start();
        for (position, piece) in pieces.iter().enumerate() {
            match piece {
                TemplatePart::Literal(literal) => {
                    // A separator matches any separator; other characters match any character.
                    for expected in literal.chars() {
                        let Some(found) = rest.chars().next() else { break };
                        if expected.is_whitespace() {
                            rest = rest.trim_start();
                        } else if found == expected || expected.is_alphanumeric() || !found.is_alphanumeric() {
                            rest = &rest[found.len_utf8()..];
                        }
                    }
                }
                TemplatePart::Pattern { name, suffix, .. } => {
                    let is_number_next = matches!(pieces.get(position + 1), Some(TemplatePart::Pattern { .. }));
                    rest = read.parse_pattern(name, rest.trim_start(), is_number_next)?;
                    if suffix.is_some() {
                        rest = rest.get(2..).unwrap_or_default();
                    }
                }
            }
        }
        Ok(read)
    }

    fn parse_pattern<'t>(&mut self, name: &str, rest: &'t str, is_number_next: bool) -> SqlResult<&'t str> {
        match name {
            "MONTH" | "Month" | "month" | "MON" | "Mon" | "mon" => {
                let is_short = name.len() == 3;
                let (index, length) =
                    match_name_prefix(rest, &MONTHS, is_short).ok_or_else(|| invalid(first_word(rest), name))?;
                self.month = u32::try_from(index + 1).ok();
                return Ok(&rest[length..]);
            }
            "DAY" | "Day" | "day" | "DY" | "Dy" | "dy" => {
                let (_, length) =
                    match_name_prefix(rest, &DAYS, name.len() == 2).ok_or_else(|| invalid(first_word(rest), name))?;
                return Ok(&rest[length..]);
            }
            "AM" | "PM" | "am" | "pm" | "A.M." | "P.M." | "a.m." | "p.m." => {
                let found = rest.get(..name.len()).unwrap_or(rest);
                self.is_afternoon = Some(match found.chars().next() {
                    Some('A' | 'a') => false,
                    Some('P' | 'p') => true,
                    _ => return Err(invalid(found, name)),
                });
                return Ok(&rest[found.len()..]);
            }
            _ => {}
        }
        let (sign, unsigned) = match rest.strip_prefix('-') {
            Some(unsigned) if name == "TZH" => (-1, unsigned),
            _ => (1, rest.strip_prefix('+').unwrap_or(rest)),
        };
        let width = match name {
            "YYYY" if !is_number_next => 9,
            "YYYY" | "IYYY" => 4,
            "YYY" | "DDD" | "MS" | "FF3" => 3,
            "US" | "FF6" => 6,
            "Y" | "D" | "Q" | "FF1" => 1,
            "J" => 7,
            "SSSS" | "SSSSS" => 5,
            "FF4" => 4,
            "FF5" => 5,
            "YY" | "MM" | "DD" | "HH24" | "HH12" | "HH" | "MI" | "SS" | "TZH" | "TZM" | "FF2" => 2,
            other => return Err(SqlError::unsupported(format_args!("reading the template pattern \"{other}\""))),
        };
        let length = unsigned.bytes().take(width).take_while(u8::is_ascii_digit).count();
        let digits = &unsigned[..length];
        let number: i32 = digits.parse().map_err(|_| invalid(first_word(rest), name))?;
        let fraction =
            || types::numeric::power_of_ten(u8::try_from(6_usize.saturating_sub(length)).expect("at most 6"));
        match name {
            "YYYY" | "IYYY" => self.year = Some(number),
            "YYY" | "YY" | "Y" => {
                self.year = Some(match number {
                    0..70 => 2000 + number,
                    70..100 => 1900 + number,
                    100..520 => 2000 + number,
                    _ => 1000 + number,
                })
            }
            "MM" => self.month = Some(number.cast_unsigned()),
            "DD" => self.day = Some(number.cast_unsigned()),
            "DDD" => self.day_of_year = Some(number),
            "HH24" => self.hour = number.into(),
            "HH12" | "HH" => (self.hour, self.is_twelve_hour) = (number.into(), true),
            "MI" => self.minute = number.into(),
            "SS" => self.second = number.into(),
            "SSSS" | "SSSSS" => {
                (self.hour, self.minute, self.second) =
                    ((number / 3600).into(), (number / 60 % 60).into(), (number % 60).into())
            }
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                self.microsecond = i64::try_from(i128::from(number) * fraction()).unwrap_or_default();
            }
            "TZH" => self.offset_seconds_east = Some(self.offset_seconds_east.unwrap_or(0) + sign * number * 3600),
            "TZM" => self.offset_seconds_east = self.offset_seconds_east.map(|east| east + east.signum() * number * 60),
            "J" => self.julian = Some(number),
            _ => {}
        }
        Ok(&unsigned[length..])
    }

    fn days(&self, text: &str) -> SqlResult<i32> {
        let error = || {
            SqlError::new(Condition::DatetimeFieldOverflow, format!("date/time field value out of range: \"{text}\""))
        };
        if let Some(julian) = self.julian {
            return Ok(julian - 2_440_588);
        }
        // PostgreSQL defaults to 1 BC, which is out of Kiln's range.
        let year = self.year.filter(|year| (1..=9999).contains(year)).ok_or_else(error)?;
        if let Some(number) = self.day_of_year {
            return Ok(days_from_civil(year, 1, 1) + number - 1);
        }
        let month = Some(self.month.unwrap_or(1)).filter(|month| (1..=12).contains(month)).ok_or_else(error)?;
        let day = Some(self.day.unwrap_or(1))
            .filter(|day| (1..=days_in_month(year, month)).contains(day))
            .ok_or_else(error)?;
        Ok(days_from_civil(year, month, day))
    }

    fn time(&self, text: &str) -> SqlResult<i64> {
        let error = || {
            SqlError::new(Condition::DatetimeFieldOverflow, format!("date/time field value out of range: \"{text}\""))
        };
        let hour = match (self.is_twelve_hour, self.is_afternoon) {
            (true, _) if !(1..=12).contains(&self.hour) => return Err(error()),
            (true, Some(true)) => self.hour % 12 + 12,
            (true, _) => self.hour % 12,
            (false, Some(true)) if self.hour < 12 => self.hour + 12,
            _ => self.hour,
        };
        if 24 < hour || 59 < self.minute || 60 < self.second {
            return Err(error());
        }
        Ok((hour * 3600 + self.minute * 60 + self.second) * 1_000_000 + self.microsecond)
    }
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(text)
}

pub(super) fn to_date(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (texts, templates) = (call.text(0), call.text(1));
    let mut template = TemplateCache::default();
    call.build_primitive::<Date32Type>(|row| {
        let (Some(text), Some(pattern)) = (texts.get(row), templates.get(row)) else { return Ok(None) };
        ParsedDateTime::parse(text, template.get(pattern)?)?.days(text).map(Some)
    })
}

pub(super) fn to_timestamp(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (texts, templates) = (call.text(0), call.text(1));
    let mut template = TemplateCache::default();
    call.build_primitive::<TimestampMicrosecondType>(|row| {
        let (Some(text), Some(pattern)) = (texts.get(row), templates.get(row)) else { return Ok(None) };
        let read = ParsedDateTime::parse(text, template.get(pattern)?)?;
        let local = i64::from(read.days(text)?) * US_PER_DAY + read.time(text)?;
        Ok(Some(match read.offset_seconds_east {
            Some(east) => local - i64::from(east) * 1_000_000,
            None => call.session.zone.to_universal(local),
        }))
    })
}
