//! Text form of `time`, whose values are microseconds since midnight, up to 24:00:00.

use super::DateContext;
use super::date::push_two_digits;
use super::datetime_parser::{invalid_datetime, parse_datetime};
use crate::SqlResult;

#[cfg(test)]
mod tests;

/// Parses a time of day such as `04:05:06.789`, `04:05 PM` or `040506`, ignoring a date or zone in the text.
pub fn parse_time(text: &str) -> SqlResult<i64> {
    if let Some((us, rest)) = parse_iso_time(text.as_bytes())
        && rest.is_empty()
    {
        return Ok(us);
    }
    let trimmed = text.trim();
    let is_packed = matches!(trimmed.len(), 4 | 6) && trimmed.bytes().all(|byte| byte.is_ascii_digit());
    let written = if is_packed {
        parse_datetime(&format!("T{trimmed}"), "time", &DateContext::default())
    } else {
        parse_datetime(text, "time", &DateContext::default())
    };
    written?.time_us.ok_or_else(|| invalid_datetime("time", text))
}

/// Appends `HH:MM:SS`, with up to six fractional digits if the fraction is not zero.
pub fn format_time(us: i64, out: &mut String) {
    let seconds = u32::try_from(us.div_euclid(1_000_000)).unwrap_or_default();
    push_two_digits(seconds / 3600, out);
    out.push(':');
    push_two_digits(seconds / 60 % 60, out);
    out.push(':');
    push_two_digits(seconds % 60, out);
    push_fraction(u32::try_from(us.rem_euclid(1_000_000)).expect("below a million"), out);
}

/// Appends a point and the microseconds without trailing zeros; appends nothing for 0.
pub(super) fn push_fraction(microseconds: u32, out: &mut String) {
    if microseconds == 0 {
        return;
    }
    let mut digits = [0_u8; 6];
    let mut rest = microseconds;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).expect("a digit is below 10");
        rest /= 10;
    }
    let end = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    out.push('.');
    out.push_str(std::str::from_utf8(&digits[..end]).expect("digits are ASCII"));
}

/// Parses a time in the form `HH:MM:SS[.ffffff]` at the start of `bytes`, if in range; returns it with the remaining
/// bytes.
pub(super) fn parse_iso_time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = bytes else { return None };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    let (hours, minutes, seconds) =
        (digit(h1)? * 10 + digit(h2)?, digit(m1)? * 10 + digit(m2)?, digit(s1)? * 10 + digit(s2)?);
    if 23 < hours || 59 < minutes || 59 < seconds {
        return None;
    }
    let mut us = (hours * 3600 + minutes * 60 + seconds) * 1_000_000;
    let [b'.', fraction @ ..] = rest else { return Some((us, rest)) };
    let count = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 || 6 < count {
        return None;
    }
    let mut unit = 100_000;
    for byte in &fraction[..count] {
        us += i64::from(byte - b'0') * unit;
        unit /= 10;
    }
    Some((us, &fraction[count..]))
}
