//! The function `format('%s and %I', ...)`.

use arrow::array::ArrayRef;
use types::value_memory::check_growth;
use types::{Condition, SqlError, SqlResult};

use super::push_argument;
use super::quote::{push_identifier, push_literal};
use crate::call::Call;

pub(super) fn format(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let template = call.text(0);
    call.build_texts(|row, out| {
        let Some(template) = template.get(row) else { return Ok(None) };
        fill(call, row, template, out).map(Some)
    })
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(Condition::InvalidParameterValue, message)
}

fn fill(call: &Call<'_>, row: usize, template: &str, out: &mut String) -> SqlResult<()> {
    let mut next = 1;
    let mut rest = template;
    while let Some(start) = rest.find('%') {
        check_growth(out, start)?;
        out.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let mut argument = None;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if 0 < digits && rest[digits..].starts_with('$') {
            argument = Some(rest[..digits].parse::<usize>().map_err(|_| invalid("number is out of range"))?);
            rest = &rest[digits + 1..];
        }
        let is_left = rest.starts_with('-');
        rest = rest.trim_start_matches('-');
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let width: usize =
            if digits == 0 { 0 } else { rest[..digits].parse().map_err(|_| invalid("number is out of range"))? };
        rest = &rest[digits..];
        if rest.starts_with('*') {
            return Err(SqlError::unsupported("a width taken from an argument of format()"));
        }
        let conversion = rest.chars().next().ok_or_else(|| invalid("unterminated format() type specifier"))?;
        rest = &rest[conversion.len_utf8()..];
        let index = argument.unwrap_or(next);
        next = index + 1;
        if index == 0 {
            return Err(invalid("format specifies argument 0, but arguments are numbered from 1"));
        }
        if call.argument_count() <= index {
            return Err(invalid("too few arguments for format()"));
        }
        let mut text = String::new();
        let found = push_argument(call, index, row, &mut text)?;
        let mut filled = String::new();
        match (conversion, found) {
            ('s', _) => filled = text,
            ('I', Some(())) => push_identifier(&text, &mut filled),
            ('I', None) => {
                return Err(SqlError::new(
                    Condition::NullValueNotAllowed,
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            ('L', Some(())) => push_literal(&text, &mut filled),
            ('L', None) => filled.push_str("NULL"),
            (other, _) => return Err(invalid(&format!("unrecognized format() type specifier \"{other}\""))),
        }
        let padding = width.saturating_sub(filled.chars().count());
        check_growth(out, padding.saturating_add(filled.len()))?;
        if !is_left {
            out.extend(std::iter::repeat_n(' ', padding));
        }
        out.push_str(&filled);
        if is_left {
            out.extend(std::iter::repeat_n(' ', padding));
        }
    }
    out.push_str(rest);
    Ok(())
}
