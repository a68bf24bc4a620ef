//! Time zones: parsing of `TimeZone` values and conversion between local and universal time.

use std::collections::HashMap;
use std::sync::OnceLock;

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use crate::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

const SECOND_US: i64 = 1_000_000;

/// A time zone, as set by `TimeZone`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "SerializedZone", try_from = "SerializedZone")]
pub enum SessionZone {
    /// Fixed offset in seconds east of Greenwich.
    Fixed(i32),
    /// A zone of the tz database.
    Named(Tz),
}

/// Serialized form of a zone: zones of the tz database are stored by name.
#[derive(Serialize, Deserialize)]
enum SerializedZone {
    Fixed(i32),
    Named(String),
}

impl From<SessionZone> for SerializedZone {
    fn from(zone: SessionZone) -> Self {
        match zone {
            SessionZone::Fixed(east) => Self::Fixed(east),
            SessionZone::Named(zone) => Self::Named(zone.name().to_owned()),
        }
    }
}

impl TryFrom<SerializedZone> for SessionZone {
    type Error = chrono_tz::ParseError;

    fn try_from(written: SerializedZone) -> Result<Self, Self::Error> {
        Ok(match written {
            SerializedZone::Fixed(east) => Self::Fixed(east),
            SerializedZone::Named(name) => Self::Named(name.parse()?),
        })
    }
}

impl SessionZone {
    /// Coordinated Universal Time.
    pub const UTC: SessionZone = SessionZone::Named(Tz::UTC);

    /// Parses the argument of `SET TIME ZONE`: a name in any case, hours east of Greenwich, or a POSIX abbreviation
    /// with an offset west. `22023` for anything else.
    pub fn parse(text: &str) -> SqlResult<SessionZone> {
        let unknown = || {
            SqlError::new(
                Condition::InvalidParameterValue,
                format!("invalid value for parameter \"TimeZone\": \"{text}\""),
            )
        };
        find_zone(text).or_else(|| parse_hours_east(text)).or_else(|| parse_posix_zone(text)).ok_or_else(unknown)
    }

    /// Parses a zone after `AT TIME ZONE` or in a timestamp: abbreviations take precedence over names. `22023` if
    /// unknown.
    pub fn parse_in_value(text: &str) -> SqlResult<SessionZone> {
        let unknown =
            || SqlError::new(Condition::InvalidParameterValue, format!("time zone \"{text}\" not recognized"));
        if text.starts_with(['+', '-']) {
            // As in POSIX, a bare signed number is positive west of Greenwich.
            return parse_offset(text).map(|east| SessionZone::Fixed(-east)).ok_or_else(unknown);
        }
        abbreviation_offset(text)
            .map(SessionZone::Fixed)
            .or_else(|| find_zone(text))
            .or_else(|| parse_posix_zone(text))
            .ok_or_else(unknown)
    }

    /// Returns the name that `SHOW TimeZone` prints.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            SessionZone::Named(zone) => zone.name().to_owned(),
            SessionZone::Fixed(east) => {
                let mut name = "<".to_owned();
                push_offset(*east, &mut name);
                name.push('>');
                push_offset(-*east, &mut name);
                name
            }
        }
    }

    /// Returns the offset in seconds east of Greenwich at a universal time, given in microseconds since 1970-01-01.
    #[must_use]
    pub fn offset_at(&self, universal_us: i64) -> i32 {
        match self {
            SessionZone::Fixed(east) => *east,
            SessionZone::Named(Tz::UTC | Tz::Etc__UTC) => 0,
            SessionZone::Named(zone) => {
                let instant = DateTime::from_timestamp(universal_us.div_euclid(SECOND_US), 0).unwrap_or_default();
                zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc()
            }
        }
    }

    /// Converts a universal time to local time, both in microseconds since 1970-01-01.
    #[must_use]
    pub fn to_local(self, universal_us: i64) -> i64 {
        universal_us + i64::from(self.offset_at(universal_us)) * SECOND_US
    }

    /// Converts a local time to universal time. As in PostgreSQL, local times skipped in spring use the offset before
    /// the gap, and local times repeated in autumn the offset after the change.
    #[must_use]
    pub fn to_universal(self, local_us: i64) -> i64 {
        let east = match self {
            SessionZone::Fixed(east) => east,
            SessionZone::Named(Tz::UTC | Tz::Etc__UTC) => 0,
            SessionZone::Named(zone) => {
                let local = utc_datetime(local_us);
                match zone.offset_from_local_datetime(&local) {
                    MappedLocalTime::Single(offset) => offset.fix().local_minus_utc(),
                    MappedLocalTime::Ambiguous(_, later) => later.fix().local_minus_utc(),
                    MappedLocalTime::None => {
                        let before = utc_datetime(local_us.saturating_sub(86_400 * SECOND_US));
                        zone.offset_from_utc_datetime(&before).fix().local_minus_utc()
                    }
                }
            }
        };
        local_us - i64::from(east) * SECOND_US
    }

    /// Returns the abbreviation at a universal time, such as `CET`, or the offset if the zone has none.
    #[must_use]
    pub fn abbreviation_at(&self, universal_us: i64) -> String {
        match self {
            SessionZone::Fixed(east) => {
                let mut name = String::new();
                push_offset(*east, &mut name);
                name
            }
            SessionZone::Named(zone) => {
                let instant = DateTime::from_timestamp(universal_us.div_euclid(SECOND_US), 0).unwrap_or_default();
                zone.offset_from_utc_datetime(&instant.naive_utc()).to_string()
            }
        }
    }
}

/// Appends an offset as `+05`, `-03:30` or `+00:19:32`.
pub fn push_offset(east: i32, out: &mut String) {
    out.push(if east < 0 { '-' } else { '+' });
    let seconds = east.unsigned_abs();
    push_two_digits(seconds / 3600, out);
    if !seconds.is_multiple_of(3600) {
        out.push(':');
        push_two_digits(seconds / 60 % 60, out);
        if !seconds.is_multiple_of(60) {
            out.push(':');
            push_two_digits(seconds % 60, out);
        }
    }
}

fn push_two_digits(value: u32, out: &mut String) {
    for digit in [value / 10 % 10, value % 10] {
        out.push(char::from(b'0' + u8::try_from(digit).expect("a digit is below 10")));
    }
}

fn utc_datetime(us: i64) -> NaiveDateTime {
    DateTime::from_timestamp(us.div_euclid(SECOND_US), 0).unwrap_or_default().naive_utc()
}

/// Parses an offset such as `+5`, `-07:30`, `+0530` or `+05:30:15`; returns seconds with the written sign.
pub(crate) fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes() {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let number = |digits: &[u8]| -> Option<i32> {
        let is_number = !digits.is_empty() && digits.len() <= 4 && digits.iter().all(u8::is_ascii_digit);
        is_number.then(|| digits.iter().fold(0, |value, digit| value * 10 + i32::from(digit - b'0')))
    };
    let mut parts = digits.split(|byte| *byte == b':');
    let first = parts.next()?;
    let (hours, mut minutes) = match (number(first)?, first.len()) {
        (value, 1 | 2) => (value, 0),
        (value, _) => (value / 100, value % 100),
    };
    if let Some(part) = parts.next() {
        minutes = number(part)?;
    }
    let seconds = parts.next().map_or(Some(0), number)?;
    let is_valid = parts.next().is_none() && hours <= 15 && minutes < 60 && seconds < 60;
    is_valid.then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}

fn find_zone(text: &str) -> Option<SessionZone> {
    static BY_NAME: OnceLock<HashMap<String, Tz>> = OnceLock::new();
    let by_name = BY_NAME
        .get_or_init(|| chrono_tz::TZ_VARIANTS.iter().map(|zone| (zone.name().to_ascii_lowercase(), *zone)).collect());
    by_name.get(&text.trim().to_ascii_lowercase()).map(|zone| SessionZone::Named(*zone))
}

fn parse_hours_east(text: &str) -> Option<SessionZone> {
    let hours: f64 = text.trim().parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "at most 15 hours of seconds")]
    (hours.abs() <= 15.0).then(|| SessionZone::Fixed((hours * 3600.0).round() as i32))
}

/// Parses a POSIX zone such as `UTC+3` or `<-07>+07`: letters or a name in angle brackets, then hours west.
fn parse_posix_zone(text: &str) -> Option<SessionZone> {
    let rest = match text.strip_prefix('<') {
        Some(bracketed) => bracketed.split_once('>')?.1,
        None => {
            let rest = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            (3 <= text.len() - rest.len()).then_some(rest)?
        }
    };
    parse_offset(rest).map(|west| SessionZone::Fixed(-west))
}

/// Returns the offset in seconds east of a common abbreviation of PostgreSQL's default list.
pub(crate) fn abbreviation_offset(text: &str) -> Option<i32> {
    let mut lower = [0_u8; 5];
    let letters = lower.get_mut(..text.len())?;
    letters.copy_from_slice(text.as_bytes());
    letters.make_ascii_lowercase();
    let minutes = match &*letters {
        b"utc" | b"gmt" | b"z" | b"zulu" | b"wet" | b"ut" | b"uct" => 0,
        b"bst" | b"cet" | b"west" | b"met" => 60,
        b"cest" | b"eet" | b"sast" | b"ist" | b"mest" => 120,
        b"msk" | b"eest" | b"idt" => 180,
        b"msd" => 240,
        b"pkt" => 300,
        b"awst" | b"hkt" | b"pht" | b"myt" => 480,
        b"jst" | b"kst" => 540,
        b"acst" => 570,
        b"aest" => 600,
        b"acdt" => 630,
        b"aedt" => 660,
        b"nzst" => 720,
        b"nzdt" => 780,
        b"nst" => -210,
        b"ndt" => -150,
        b"adt" => -180,
        b"ast" | b"edt" => -240,
        b"est" | b"cdt" => -300,
        b"cst" | b"mdt" => -360,
        b"mst" | b"pdt" => -420,
        b"pst" | b"akdt" => -480,
        b"akst" => -540,
        b"hst" => -600,
        _ => return None,
    };
    Some(minutes * 60)
}
