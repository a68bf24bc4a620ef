//! Text form of `boolean`: any unambiguous prefix of true, false, yes, no, on, off, or 1 and 0.

use super::{invalid_syntax, trim};
use crate::SqlResult;

#[cfg(test)]
mod tests;

/// Parses a boolean; `22P02` for anything else.
pub fn parse_bool(text: &str) -> SqlResult<bool> {
    match text.as_bytes() {
        b"t" | b"true" => return Ok(true),
        b"f" | b"false" => return Ok(false),
        _ => {}
    }
    let word = trim(text);
    let begins = |full: &str, least: usize| {
        least <= word.len()
            && word.len() <= full.len()
            && full.as_bytes()[..word.len()].eq_ignore_ascii_case(word.as_bytes())
    };
    if begins("true", 1) || begins("yes", 1) || begins("on", 2) || word == "1" {
        Ok(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        Ok(false)
    } else {
        Err(invalid_syntax("boolean", text))
    }
}

/// Appends `t` or `f`. (A cast to text gives `true` or `false` instead.)
pub fn format_bool(value: bool, out: &mut String) {
    out.push(if value { 't' } else { 'f' });
}
