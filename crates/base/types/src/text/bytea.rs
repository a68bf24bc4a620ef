//! Text form of `bytea`: hex (`\x6869`), and the older escape form (`a\000b`) as input only.

use crate::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Parses hex or escape form; `22P02` if malformed.
pub fn parse_bytea(text: &str) -> SqlResult<Vec<u8>> {
    match text.as_bytes() {
        [b'\\', b'x', digits @ ..] => parse_hex(text, digits),
        escaped => parse_escape(escaped),
    }
}

/// Appends `\x` and two lower-case digits for each byte.
pub fn format_bytea(value: &[u8], out: &mut String) {
    out.reserve(2 + value.len() * 2);
    out.push_str("\\x");
    for byte in value {
        push_hex(*byte, out);
    }
}

pub(super) fn push_hex(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

pub(super) fn parse_hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

fn parse_hex(text: &str, digits: &[u8]) -> SqlResult<Vec<u8>> {
    let invalid = |message: String| SqlError::new(Condition::InvalidParameterValue, message);
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut high = None;
    for (index, &digit) in digits.iter().enumerate() {
        // White space is allowed between bytes, not within one.
        if high.is_none() && matches!(digit, b' ' | b'\n' | b'\t' | b'\r') {
            continue;
        }
        let Some(value) = parse_hex_digit(digit) else {
            let shown = text.get(index + 2..).and_then(|rest| rest.chars().next()).unwrap_or('?');
            return Err(invalid(format!("invalid hexadecimal digit: \"{shown}\"")));
        };
        high = match high {
            None => Some(value),
            Some(high) => {
                bytes.push(high << 4 | value);
                None
            }
        };
    }
    match high {
        None => Ok(bytes),
        Some(_) => Err(invalid("invalid hexadecimal data: odd number of digits".to_owned())),
    }
}

fn parse_escape(text: &[u8]) -> SqlResult<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Ok(bytes),
            [b'\\', b'\\', after @ ..] => {
                bytes.push(b'\\');
                after
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            [b'\\', ..] => {
                return Err(SqlError::new(Condition::InvalidTextRepresentation, "invalid input syntax for type bytea"));
            }
            [plain, after @ ..] => {
                bytes.push(*plain);
                after
            }
        };
    }
}
