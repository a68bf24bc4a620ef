//! Text form of `uuid`: 32 hexadecimal digits, optionally with hyphens after every fourth digit and in braces.

use super::invalid_syntax;
use crate::SqlResult;

#[cfg(test)]
mod tests;

/// Parses a UUID in any of PostgreSQL's forms.
pub fn parse_uuid(text: &str) -> SqlResult<[u8; 16]> {
    read(text.as_bytes()).ok_or_else(|| invalid_syntax("uuid", text))
}

fn read(text: &[u8]) -> Option<[u8; 16]> {
    let inner = match text {
        [b'{', inner @ .., b'}'] => inner,
        inner => inner,
    };
    let mut bytes = [0; 16];
    let mut rest = inner;
    for (index, byte) in bytes.iter_mut().enumerate() {
        let [high, low, after @ ..] = rest else { return None };
        *byte = super::bytea::parse_hex_digit(*high)? << 4 | super::bytea::parse_hex_digit(*low)?;
        rest = match after {
            [b'-', after @ ..] if index % 2 == 1 && index != 15 => after,
            after => after,
        };
    }
    rest.is_empty().then_some(bytes)
}

/// Appends the lower-case form with hyphens.
pub fn format_uuid(value: &[u8; 16], out: &mut String) {
    for (index, byte) in value.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        super::bytea::push_hex(*byte, out);
    }
}
