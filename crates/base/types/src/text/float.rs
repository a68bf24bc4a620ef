//! Text form of `real` and `double precision`: the shortest digits that restore the value, as PostgreSQL prints them.

use std::fmt::Write;

use super::{invalid_syntax, trim};
use crate::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Parses a `double precision`; overflow and underflow are `22003`.
pub fn parse_float8(text: &str) -> SqlResult<f64> {
    let word = trim(text);
    let value: f64 = accept_postgres_spelling(word)
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| invalid_syntax("double precision", text))?;
    if (value.is_infinite() && !names_infinity(word)) || (value == 0.0 && has_nonzero_digit(word)) {
        return Err(out_of_range(word, "double precision"));
    }
    Ok(value)
}

/// Parses a `real`; overflow and underflow are `22003`.
pub fn parse_float4(text: &str) -> SqlResult<f32> {
    let word = trim(text);
    let value: f32 = accept_postgres_spelling(word)
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| invalid_syntax("real", text))?;
    if (value.is_infinite() && !names_infinity(word)) || (value == 0.0 && has_nonzero_digit(word)) {
        return Err(out_of_range(word, "real"));
    }
    Ok(value)
}

/// Appends a `double precision`: `1`, `0.1`, `1e+20`, `NaN`, `-Infinity`, `-0`.
pub fn format_float8(value: f64, out: &mut String) {
    if !format_special(value, out) {
        let mut scientific = ScientificNotation::default();
        write!(scientific, "{value:e}").expect("the buffer holds every shortest float");
        scientific.write_postgres_form(15, out);
    }
}

/// Appends a `real`.
pub fn format_float4(value: f32, out: &mut String) {
    if !format_special(f64::from(value), out) {
        let mut scientific = ScientificNotation::default();
        write!(scientific, "{value:e}").expect("the buffer holds every shortest float");
        scientific.write_postgres_form(6, out);
    }
}

fn format_special(value: f64, out: &mut String) -> bool {
    let spelled = if value.is_nan() {
        "NaN"
    } else if value == f64::INFINITY {
        "Infinity"
    } else if value == f64::NEG_INFINITY {
        "-Infinity"
    } else if value == 0.0 {
        if value.is_sign_negative() { "-0" } else { "0" }
    } else {
        return false;
    };
    out.push_str(spelled);
    true
}

/// Rust's `{:e}` form of a float on the stack: digits with at most one point, `e`, exponent.
#[derive(Default)]
struct ScientificNotation {
    bytes: [u8; 32],
    len: usize,
}

impl Write for ScientificNotation {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl ScientificNotation {
    /// Appends the value positionally for exponents from -4 to below `positional_end`, else with an exponent of two or more digits.
    fn write_postgres_form(&self, positional_end: i32, out: &mut String) {
        let text = std::str::from_utf8(&self.bytes[..self.len]).expect("only UTF-8 text is written to the buffer");
        let (mantissa, exponent) = text.split_once('e').expect("{:e} writes an exponent");
        let exponent: i32 = exponent.parse().expect("{:e} writes a whole exponent");
        let mantissa = mantissa.strip_prefix('-').map_or(mantissa, |positive| {
            out.push('-');
            positive
        });
        if !(-4..positional_end).contains(&exponent) {
            out.push_str(mantissa);
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(out, "e{sign}{:02}", exponent.unsigned_abs()).expect("writing to a String cannot fail");
            return;
        }
        let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if exponent < 0 {
            out.push_str("0.");
            for _ in 1..-exponent {
                out.push('0');
            }
            out.push_str(first);
            out.push_str(rest);
            return;
        }
        out.push_str(first);
        let whole = usize::try_from(exponent).expect("the exponent is not negative in this branch");
        if rest.len() <= whole {
            out.push_str(rest);
            for _ in rest.len()..whole {
                out.push('0');
            }
        } else {
            out.push_str(&rest[..whole]);
            out.push('.');
            out.push_str(&rest[whole..]);
        }
    }
}

/// Returns `word` if PostgreSQL accepts its spelling. Rust accepts a few more, such as a lone point.
fn accept_postgres_spelling(word: &str) -> Option<&str> {
    let first = word.bytes().find(|byte| !matches!(byte, b'+' | b'-'))?;
    (first.is_ascii_digit() || first == b'.' || names_infinity(word) || names_nan(word)).then_some(word)
}

fn names_infinity(word: &str) -> bool {
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("inf")
}

fn names_nan(word: &str) -> bool {
    word.eq_ignore_ascii_case("nan")
}

fn has_nonzero_digit(word: &str) -> bool {
    let mantissa = word.split(['e', 'E']).next().unwrap_or(word);
    mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
}

fn out_of_range(word: &str, type_name: &str) -> SqlError {
    SqlError::new(Condition::NumericValueOutOfRange, format!("\"{word}\" is out of range for type {type_name}"))
}
