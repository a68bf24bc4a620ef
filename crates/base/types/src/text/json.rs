//! Text form of `json` and `jsonb`.
//!
//! A `json` value is its validated text. A `jsonb` value is its normal form: keys sorted by length and then bytes, the
//! last of equal keys, one space after `:` and `,`, numbers without exponents.
//!
//! Both are stored as text, on which operators work directly: [`members`] and [`elements`] return the spans of a valid
//! value's parts without copying. A part of a normal form is itself in normal form.

use std::borrow::Cow;
use std::fmt::Write;

use crate::value_memory::check_growth;
use crate::{Condition, SqlError, SqlResult, ValueMemoryCounter};

#[cfg(test)]
mod tests;

/// Maximum nesting depth, because parsing is recursive.
const DEPTH_MAX: usize = 256;
/// Maximum number of digits that a number's exponent may add.
const EXPONENT_MAX: i64 = 16_383;

/// Parsed JSON value; numbers are kept as text.
#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// Members in their order in the text, including duplicates.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Validates JSON; `22P02` with PostgreSQL's detail if it is malformed.
pub fn check_json(text: &str) -> SqlResult<()> {
    parse_json(text).map(|_| ())
}

/// Parses a JSON value.
pub fn parse_json(text: &str) -> SqlResult<Json<'_>> {
    let mut reader = JsonParser { text, position: 0, decodes_strings: true, memory: ValueMemoryCounter::default() };
    let value = reader.parse_value(0)?;
    reader.skip_space();
    if reader.position != text.len() { Err(reader.invalid()) } else { Ok(value) }
}

/// Returns the `jsonb` normal form of JSON text.
pub fn normalize_jsonb(text: &str) -> SqlResult<String> {
    let value = parse_json(text)?;
    let mut out = String::with_capacity(text.len());
    value.write_normal(&mut out)?;
    Ok(out)
}

/// Appends `text` as a JSON string with its quotes.
pub fn format_json_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain_from = 0;
    for (index, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0c => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[plain_from..index]);
        plain_from = index + 1;
        if escape.is_empty() {
            write!(out, "\\u{byte:04x}").expect("writing to a String cannot fail");
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

/// Returns the members of a valid JSON object, with decoded keys and the text of values; `None` if it is not an object.
#[must_use]
pub fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    let mut reader = JsonParser { text, position: 0, decodes_strings: false, memory: ValueMemoryCounter::default() };
    reader.skip_space();
    reader.consume(b'{').then(|| reader.member_spans())?
}

/// Returns the text of the elements of a valid JSON array; `None` if it is not an array.
#[must_use]
pub fn elements(text: &str) -> Option<Vec<&str>> {
    let mut reader = JsonParser { text, position: 0, decodes_strings: false, memory: ValueMemoryCounter::default() };
    reader.skip_space();
    reader.consume(b'[').then(|| reader.element_spans())?
}

/// Decodes a valid JSON string; `None` if it is not a string.
#[must_use]
pub fn string_value(text: &str) -> Option<Cow<'_, str>> {
    let trimmed = text.trim();
    if !trimmed.starts_with('"') {
        return None;
    }
    JsonParser { text: trimmed, position: 0, decodes_strings: true, memory: ValueMemoryCounter::default() }
        .parse_string()
        .ok()
}

impl Json<'_> {
    /// Appends the `jsonb` normal form.
    pub fn write_normal(&self, out: &mut String) -> SqlResult<()> {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(digits) => write_number(digits, out)?,
            Json::String(text) => format_json_string(text, out),
            Json::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index != 0 {
                        out.push_str(", ");
                    }
                    element.write_normal(out)?;
                }
                out.push(']');
            }
            Json::Object(members) => {
                let mut order: Vec<usize> = (0..members.len()).collect();
                order.sort_by(|a, b| {
                    let (a, b) = (&members[*a].0, &members[*b].0);
                    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
                });
                out.push('{');
                let mut is_first = true;
                for (position, index) in order.iter().enumerate() {
                    // The sort is stable, so the last of equal keys in the text comes last.
                    if order.get(position + 1).is_some_and(|next| members[*next].0 == members[*index].0) {
                        continue;
                    }
                    if !is_first {
                        out.push_str(", ");
                    }
                    is_first = false;
                    format_json_string(&members[*index].0, out);
                    out.push_str(": ");
                    members[*index].1.write_normal(out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }

    /// Returns the result of `json_typeof`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }
}

/// Appends a JSON number as PostgreSQL's numeric prints it: without an exponent and with all digits of the text.
fn write_number(text: &str, out: &mut String) -> SqlResult<()> {
    let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |unsigned| (true, unsigned));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent
        .parse::<i64>()
        .ok()
        .filter(|exponent| exponent.abs() <= EXPONENT_MAX)
        .ok_or_else(|| SqlError::new(Condition::NumericValueOutOfRange, "value overflows numeric format"))?;
    if negative && mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        out.push('-');
    }
    if exponent == 0 {
        out.push_str(mantissa);
        return Ok(());
    }
    // A few characters of input can produce EXPONENT_MAX digits.
    check_growth(out, usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX).saturating_add(text.len()))?;
    let digits: String = [whole, fraction].concat();
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX) + exponent;
    let is_zero = digits.bytes().all(|byte| byte == b'0');
    let scale = (i64::try_from(fraction.len()).unwrap_or(i64::MAX) - exponent).max(0);
    let digit_at = |position: i64| -> char {
        usize::try_from(position)
            .ok()
            .and_then(|position| digits.as_bytes().get(position))
            .map_or('0', |byte| char::from(*byte))
    };
    let first = (0..point.max(0)).find(|position| digit_at(*position) != '0').filter(|_| !is_zero);
    match first {
        Some(first) => (first..point).for_each(|position| out.push(digit_at(position))),
        None => out.push('0'),
    }
    if 0 < scale {
        out.push('.');
        (point..point + scale).for_each(|position| out.push(digit_at(position)));
    }
    Ok(())
}

struct JsonParser<'a> {
    text: &'a str,
    position: usize,
    /// Whether strings are decoded; for spans of validated text only their ends matter.
    decodes_strings: bool,
    /// Counter of the memory of the parsed value.
    memory: ValueMemoryCounter,
}

impl<'a> JsonParser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    fn consume(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn invalid(&self) -> SqlError {
        let error = SqlError::new(Condition::InvalidTextRepresentation, "invalid input syntax for type json");
        let rest = &self.text[self.text.floor_char_boundary(self.position)..];
        let Some(first) = rest.chars().next() else {
            return error.with_detail("The input string ended unexpectedly.");
        };
        let word_len = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || 0x80 <= *byte).count();
        let token = if word_len == 0 { &rest[..first.len_utf8()] } else { &rest[..word_len] };
        error.with_detail(format!("Token \"{token}\" is invalid."))
    }

    fn parse_value(&mut self, depth: usize) -> SqlResult<Json<'a>> {
        if DEPTH_MAX < depth {
            return Err(SqlError::new(
                Condition::StatementTooComplex,
                format!("JSON is nested deeper than {DEPTH_MAX} levels"),
            ));
        }
        self.skip_space();
        let start = self.position;
        match self.peek() {
            Some(b'{') => self.parse_object(depth),
            Some(b'[') => self.parse_array(depth),
            Some(b'"') => self.parse_string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => {
                self.parse_number()?;
                Ok(Json::Number(Cow::Borrowed(&self.text[start..self.position])))
            }
            _ => {
                for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
                    let after = self.text.as_bytes().get(self.position + word.len());
                    if self.text[self.text.floor_char_boundary(self.position)..].starts_with(word)
                        && !after.is_some_and(u8::is_ascii_alphanumeric)
                    {
                        self.position += word.len();
                        return Ok(value);
                    }
                }
                Err(self.invalid())
            }
        }
    }

    fn parse_object(&mut self, depth: usize) -> SqlResult<Json<'a>> {
        self.position += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.consume(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.invalid());
            }
            let key = self.parse_string()?;
            self.skip_space();
            if !self.consume(b':') {
                return Err(self.invalid());
            }
            let value = self.parse_value(depth + 1)?;
            self.memory.add_scratch(size_of::<(Cow<'_, str>, Json<'_>)>() + key.len())?;
            members.push((key, value));
            self.skip_space();
            if self.consume(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.consume(b',') {
                return Err(self.invalid());
            }
        }
    }

    fn parse_array(&mut self, depth: usize) -> SqlResult<Json<'a>> {
        self.position += 1;
        let mut elements = Vec::new();
        self.skip_space();
        if self.consume(b']') {
            return Ok(Json::Array(elements));
        }
        loop {
            let value = self.parse_value(depth + 1)?;
            self.memory.add_scratch(size_of::<Json<'_>>())?;
            elements.push(value);
            self.skip_space();
            if self.consume(b']') {
                return Ok(Json::Array(elements));
            }
            if !self.consume(b',') {
                return Err(self.invalid());
            }
        }
    }

    fn parse_number(&mut self) -> SqlResult<()> {
        let digits = |reader: &mut Self| {
            let start = reader.position;
            while reader.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                reader.position += 1;
            }
            reader.position - start
        };
        self.consume(b'-');
        let starts_with_zero = self.peek() == Some(b'0');
        let whole = digits(self);
        if whole == 0 || (starts_with_zero && whole != 1) {
            return Err(self.invalid());
        }
        if self.consume(b'.') && digits(self) == 0 {
            return Err(self.invalid());
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.position += 1;
            if !self.consume(b'+') {
                self.consume(b'-');
            }
            if digits(self) == 0 {
                return Err(self.invalid());
            }
        }
        if self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(self.invalid());
        }
        Ok(())
    }

    /// Parses a string, starting at its opening quote.
    fn parse_string(&mut self) -> SqlResult<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.invalid());
        }
        self.position += 1;
        let start = self.position;
        let mut decoded = String::new();
        let mut plain_from = start;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let end = self.position;
                    self.position += 1;
                    if decoded.is_empty() && plain_from == start {
                        return Ok(Cow::Borrowed(&self.text[start..end]));
                    }
                    decoded.push_str(&self.text[plain_from..end]);
                    return Ok(Cow::Owned(decoded));
                }
                Some(b'\\') => {
                    if self.decodes_strings {
                        decoded.push_str(&self.text[plain_from..self.position]);
                    }
                    self.position += 1;
                    let character = self.parse_escape()?;
                    if self.decodes_strings {
                        decoded.push(character);
                        plain_from = self.position;
                    }
                }
                Some(0..0x20) => {
                    return Err(SqlError::new(
                        Condition::InvalidTextRepresentation,
                        "invalid input syntax for type json",
                    )
                    .with_detail(format!(
                        "Character with value 0x{:02x} must be escaped.",
                        self.peek().unwrap_or_default()
                    )));
                }
                Some(_) => self.position += 1,
                None => {
                    return Err(SqlError::new(
                        Condition::InvalidTextRepresentation,
                        "invalid input syntax for type json",
                    )
                    .with_detail(format!("Token \"{}\" is invalid.", &self.text[start - 1..])));
                }
            }
        }
    }

    fn parse_escape(&mut self) -> SqlResult<char> {
        let letter = self.peek();
        let character = match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.position += 1;
                return self.parse_unicode_escape();
            }
            _ => return Err(self.invalid()),
        };
        self.position += 1;
        Ok(character)
    }

    fn parse_unicode_escape(&mut self) -> SqlResult<char> {
        let invalid = |detail: &str| {
            SqlError::new(Condition::InvalidTextRepresentation, "invalid input syntax for type json")
                .with_detail(detail)
        };
        let first = self.parse_four_hex_digits()?;
        let code = match first {
            0xd800..0xdc00 => {
                if !(self.consume(b'\\') && self.consume(b'u')) {
                    return Err(invalid("Unicode low surrogate must follow a high surrogate."));
                }
                let second = self.parse_four_hex_digits()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(invalid("Unicode low surrogate must follow a high surrogate."));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            0xdc00..0xe000 => return Err(invalid("Unicode low surrogate must follow a high surrogate.")),
            0 => {
                return Err(SqlError::new(Condition::InvalidTextRepresentation, "unsupported Unicode escape sequence")
                    .with_detail("\\u0000 cannot be converted to text."));
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| invalid("Unicode escape is no character."))
    }

    fn parse_four_hex_digits(&mut self) -> SqlResult<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(super::bytea::parse_hex_digit).ok_or_else(|| {
                SqlError::new(Condition::InvalidTextRepresentation, "invalid input syntax for type json")
                    .with_detail("\"\\u\" must be followed by four hexadecimal digits.")
            })?;
            code = code << 4 | u32::from(digit);
            self.position += 1;
        }
        Ok(code)
    }

    /// Skips one value of validated text without recursion.
    fn skip_value(&mut self) -> Option<&'a str> {
        self.skip_space();
        let start = self.position;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.parse_string().ok()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.position += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.position += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => self.position += 1,
                _ => {
                    while self.peek().is_some_and(|byte| {
                        !matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r' | b':' | b'"')
                    }) {
                        self.position += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(&self.text[start..self.position]);
            }
        }
    }

    fn member_spans(&mut self) -> Option<Vec<(Cow<'a, str>, &'a str)>> {
        let mut spans = Vec::new();
        self.skip_space();
        if self.consume(b'}') {
            return Some(spans);
        }
        loop {
            self.skip_space();
            self.decodes_strings = true;
            let key = self.parse_string().ok()?;
            self.decodes_strings = false;
            self.skip_space();
            self.consume(b':');
            spans.push((key, self.skip_value()?));
            self.skip_space();
            if !self.consume(b',') {
                return Some(spans);
            }
        }
    }

    fn element_spans(&mut self) -> Option<Vec<&'a str>> {
        let mut spans = Vec::new();
        self.skip_space();
        if self.consume(b']') {
            return Some(spans);
        }
        loop {
            spans.push(self.skip_value()?);
            self.skip_space();
            if !self.consume(b',') {
                return Some(spans);
            }
        }
    }
}
