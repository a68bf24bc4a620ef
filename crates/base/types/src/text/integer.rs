//! Text form of `smallint`, `integer`, `bigint` and `oid`.

use super::{invalid_syntax, trim};
use crate::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Parses a `smallint`; `22P02` if it is not an integer, `22003` if it does not fit.
pub fn parse_int2(text: &str) -> SqlResult<i16> {
    let value = parse_signed(text, "smallint")?;
    i16::try_from(value).map_err(|_| out_of_range(text, "smallint"))
}

/// Parses an `integer`; `22P02` if it is not an integer, `22003` if it does not fit.
pub fn parse_int4(text: &str) -> SqlResult<i32> {
    let value = parse_signed(text, "integer")?;
    i32::try_from(value).map_err(|_| out_of_range(text, "integer"))
}

/// Parses a `bigint`; `22P02` if it is not an integer, `22003` if it does not fit.
pub fn parse_int8(text: &str) -> SqlResult<i64> {
    parse_signed(text, "bigint")
}

/// Parses an `oid`, an unsigned number; negative 32-bit numbers wrap around as in PostgreSQL.
pub fn parse_oid(text: &str) -> SqlResult<u32> {
    let value = parse_signed(text, "oid")?;
    u32::try_from(value)
        .or_else(|_| i32::try_from(value).map(i32::cast_unsigned))
        .map_err(|_| out_of_range(text, "oid"))
}

/// Appends an integer of any width in decimal.
pub fn format_int(value: i64, out: &mut String) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).expect("a digit is below 10");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push('-');
    }
    out.push_str(std::str::from_utf8(&digits[start..]).expect("digits are ASCII"));
}

fn parse_signed(text: &str, type_name: &'static str) -> SqlResult<i64> {
    let trimmed = trim(text);
    let (negative, digits) = match trimmed.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(invalid_syntax(type_name, text));
    }
    let mut value = 0_i64;
    let mut overflowed = false;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if 9 < digit {
            return Err(invalid_syntax(type_name, text));
        }
        // Accumulating negative values also covers the minimum, whose magnitude does not fit.
        match value.checked_mul(10).and_then(|value| value.checked_sub(i64::from(digit))) {
            Some(next) => value = next,
            None => overflowed = true,
        }
    }
    let signed = if negative { Some(value) } else { value.checked_neg() };
    match signed {
        Some(value) if !overflowed => Ok(value),
        _ => Err(out_of_range(text, type_name)),
    }
}

fn out_of_range(text: &str, type_name: &str) -> SqlError {
    SqlError::new(
        Condition::NumericValueOutOfRange,
        format!("value \"{}\" is out of range for type {type_name}", trim(text)),
    )
}
