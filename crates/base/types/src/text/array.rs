//! Text form of one-dimensional arrays: `{1,NULL,"a b"}`. More dimensions are rejected.

use super::{trim, trim_start};
use crate::{Condition, SqlError, SqlResult};

#[cfg(test)]
mod tests;

/// Parses an array and calls `push` with each element's text (`None` for NULL) in order.
pub fn parse_array(text: &str, push: &mut dyn FnMut(Option<&str>) -> SqlResult<()>) -> SqlResult<()> {
    let malformed = |detail: &str| {
        SqlError::new(Condition::InvalidTextRepresentation, format!("malformed array literal: \"{text}\""))
            .with_detail(detail)
    };
    let body = trim(text);
    if body.starts_with('[') {
        return Err(SqlError::unsupported("an array with explicit bounds"));
    }
    let Some(body) = body.strip_prefix('{') else {
        return Err(malformed("Array value must start with \"{\" or dimension information."));
    };
    let mut rest = trim_start(body);
    if let Some(after) = rest.strip_prefix('}') {
        return if trim(after).is_empty() { Ok(()) } else { Err(malformed("Junk after closing right brace.")) };
    }
    let mut element = String::new();
    loop {
        rest = trim_start(rest);
        if rest.starts_with('{') {
            return Err(SqlError::unsupported("an array of more than one dimension"));
        }
        let is_quoted = rest.starts_with('"');
        element.clear();
        rest = if is_quoted { read_quoted(&rest[1..], &mut element) } else { read_unquoted(rest, &mut element) }
            .ok_or_else(|| malformed("Unexpected end of input."))?;
        if !is_quoted && element.is_empty() {
            return Err(malformed("Unexpected array element."));
        }
        push((is_quoted || !element.eq_ignore_ascii_case("null")).then_some(element.as_str()))?;
        rest = trim_start(rest);
        if let Some(after) = rest.strip_prefix(',') {
            rest = after;
        } else if let Some(after) = rest.strip_prefix('}') {
            return if trim(after).is_empty() { Ok(()) } else { Err(malformed("Junk after closing right brace.")) };
        } else {
            return Err(malformed("Unexpected array element."));
        }
    }
}

fn read_quoted<'a>(text: &'a str, element: &mut String) -> Option<&'a str> {
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some(&text[index + 1..]),
            '\\' => element.push(characters.next()?.1),
            plain => element.push(plain),
        }
    }
    None
}

fn read_unquoted<'a>(text: &'a str, element: &mut String) -> Option<&'a str> {
    let mut characters = text.char_indices();
    let mut kept = 0;
    while let Some((index, character)) = characters.next() {
        match character {
            ',' | '}' => {
                element.truncate(kept);
                return Some(&text[index..]);
            }
            '{' | '"' => return None,
            '\\' => {
                element.push(characters.next()?.1);
                kept = element.len();
            }
            plain => {
                element.push(plain);
                if !plain.is_ascii_whitespace() {
                    kept = element.len();
                }
            }
        }
    }
    None
}

/// Writer of an array, element by element: `ArrayWriter::start(out)`, then each value, then `finish`.
#[derive(Debug)]
pub struct ArrayWriter<'a> {
    out: &'a mut String,
    is_first: bool,
}

impl<'a> ArrayWriter<'a> {
    /// Starts an array at the end of `out`.
    pub fn start(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_first: true }
    }

    /// Appends NULL.
    pub fn null(&mut self) {
        self.write_separator();
        self.out.push_str("NULL");
    }

    /// Appends an element given in its type's text form, quoted where the array syntax needs it.
    pub fn element(&mut self, text: &str) {
        self.write_separator();
        let is_plain = !text.is_empty()
            && !text.eq_ignore_ascii_case("null")
            && !text.bytes().any(|byte| {
                matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
            });
        if is_plain {
            self.out.push_str(text);
            return;
        }
        self.out.push('"');
        for character in text.chars() {
            if matches!(character, '"' | '\\') {
                self.out.push('\\');
            }
            self.out.push(character);
        }
        self.out.push('"');
    }

    /// Closes the array.
    pub fn finish(self) {
        self.out.push('}');
    }

    fn write_separator(&mut self) {
        if !self.is_first {
            self.out.push(',');
        }
        self.is_first = false;
    }
}
