//! String constants and quoted names: escapes, and strings continued on the next line.

use types::{Condition, SqlError, SqlResult};

use super::{Lexer, char_position, is_name_part, is_name_start, truncate_name};

impl Lexer<'_> {
    /// Reads `'…'`, where only `''` is an escape.
    pub(super) fn plain_string(&mut self) -> SqlResult<String> {
        let start = self.position;
        let mut text = String::new();
        loop {
            self.quoted_part('\'', &mut text, "unterminated quoted string", start)?;
            if !self.continues_on_next_line()? {
                return Ok(text);
            }
        }
    }

    /// Reads `E'…'`, with backslash escapes.
    pub(super) fn escaped_string(&mut self) -> SqlResult<String> {
        let start = self.position;
        self.position += 1;
        // Collected as bytes, because `\x` escapes are bytes.
        let mut bytes = Vec::new();
        loop {
            self.position += 1;
            self.escaped_part(&mut bytes, start)?;
            if !self.continues_on_next_line()? {
                break;
            }
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let bad = error.utf8_error().valid_up_to();
            let shown: Vec<String> =
                error.as_bytes()[bad..].iter().take(1).map(|byte| format!("0x{byte:02x}")).collect();
            let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
            SqlError::new(Condition::CharacterNotInRepertoire, message)
        })?;
        if text.contains('\0') {
            let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
            return Err(SqlError::new(Condition::CharacterNotInRepertoire, message));
        }
        Ok(text)
    }

    /// Reads `B'01'` or `X'1f'`; returns the letter in lower case and the digits.
    pub(super) fn bit_string(&mut self) -> SqlResult<String> {
        let start = self.position;
        let letter = self.remaining()[..1].to_ascii_lowercase();
        self.position += 1;
        let message =
            if letter == "b" { "unterminated bit string literal" } else { "unterminated hexadecimal string literal" };
        let mut digits = letter;
        self.quoted_part('\'', &mut digits, message, start)?;
        Ok(digits)
    }

    /// Reads `U&'…'` and an optional `UESCAPE`.
    pub(super) fn unicode_string(&mut self) -> SqlResult<String> {
        self.position += 2;
        let start = self.position;
        let text = self.plain_string()?;
        let escape = self.unicode_escape()?;
        unescape_unicode(&text, escape).map_err(|error| error.with_position(char_position(self.sql, start)))
    }

    /// Reads `U&"…"` and an optional `UESCAPE`.
    pub(super) fn unicode_name(&mut self) -> SqlResult<String> {
        self.position += 2;
        let start = self.position;
        let mut name = String::new();
        self.quoted_part('"', &mut name, "unterminated quoted identifier", start)?;
        let escape = self.unicode_escape()?;
        let name =
            unescape_unicode(&name, escape).map_err(|error| error.with_position(char_position(self.sql, start)))?;
        self.refuse_empty_name(&name, start)?;
        Ok(truncate_name(name))
    }

    /// Reads `"…"`, where only `""` is an escape.
    pub(super) fn quoted_name(&mut self) -> SqlResult<String> {
        let start = self.position;
        let mut name = String::new();
        self.quoted_part('"', &mut name, "unterminated quoted identifier", start)?;
        self.refuse_empty_name(&name, start)?;
        Ok(truncate_name(name))
    }

    fn refuse_empty_name(&self, name: &str, start: usize) -> SqlResult<()> {
        if name.is_empty() { Err(self.error("zero-length delimited identifier", start)) } else { Ok(()) }
    }

    /// Reads `$$…$$` or `$tag$…$tag$`; `None` if the dollar sign begins neither.
    pub(super) fn dollar_string(&mut self) -> SqlResult<Option<String>> {
        let rest = self.remaining();
        let Some(length) = rest[1..].find('$') else { return Ok(None) };
        let tag = &rest[1..=length];
        let is_tag = tag.is_empty() || (tag.starts_with(is_name_start) && tag.chars().all(is_name_part));
        if !is_tag {
            return Ok(None);
        }
        let fence = &rest[..length + 2];
        let body = &rest[fence.len()..];
        match body.find(fence) {
            Some(end) => {
                let text = body[..end].to_owned();
                self.position += 2 * fence.len() + end;
                Ok(Some(text))
            }
            None => {
                let start = self.position;
                self.position = self.sql.len();
                Err(self.error("unterminated dollar-quoted string", start))
            }
        }
    }

    /// Reads from an opening quote to the closing one, where a doubled quote is an escape.
    fn quoted_part(&mut self, quote: char, text: &mut String, unterminated: &str, start: usize) -> SqlResult<()> {
        self.position += 1;
        loop {
            let Some(end) = self.remaining().find(quote) else {
                self.position = self.sql.len();
                return Err(self.error(unterminated, start));
            };
            text.push_str(&self.sql[self.position..self.position + end]);
            self.position += end + 1;
            if self.peek() != Some(quote) {
                return Ok(());
            }
            text.push(quote);
            self.position += 1;
        }
    }

    /// Whether the string continues with another quoted part on a following line; moves to its quote.
    fn continues_on_next_line(&mut self) -> SqlResult<bool> {
        let end = self.position;
        // An unterminated comment is reported when the lexer gets to it.
        let line_break = self.skip_blanks().unwrap_or(false);
        // Only `--` comments are allowed between the parts.
        let joined = line_break && !self.sql[end..self.position].contains("/*");
        if joined && self.byte(0) == Some(b'\'') {
            return Ok(true);
        }
        self.position = end;
        Ok(false)
    }

    /// Reads from after the opening quote to the closing one, with backslash escapes.
    fn escaped_part(&mut self, bytes: &mut Vec<u8>, start: usize) -> SqlResult<()> {
        loop {
            let Some(c) = self.peek() else { return Err(self.error("unterminated quoted string", start)) };
            self.position += c.len_utf8();
            match c {
                '\'' if self.byte(0) == Some(b'\'') => {
                    self.position += 1;
                    bytes.push(b'\'');
                }
                '\'' => return Ok(()),
                '\\' => self.escape(bytes, start)?,
                c => push_char(bytes, c),
            }
        }
    }

    /// Reads the escape after a backslash.
    fn escape(&mut self, bytes: &mut Vec<u8>, start: usize) -> SqlResult<()> {
        let Some(c) = self.peek() else { return Err(self.error("unterminated quoted string", start)) };
        let escape_at = self.position - 1;
        self.position += c.len_utf8();
        match c {
            'b' => bytes.push(8),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            '0'..='7' => {
                let mut value = u32::from(c) - u32::from('0');
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    self.position += 1;
                }
                // Three octal digits can exceed a byte: PostgreSQL uses the low byte.
                bytes.push((value & 0xff) as u8);
            }
            'x' => match self.hex_digits(1, 2) {
                Some(value) => bytes.push((value & 0xff) as u8),
                None => bytes.push(b'x'),
            },
            'u' | 'U' => {
                let digits = if c == 'u' { 4 } else { 8 };
                let first = self.hex_digits(digits, digits);
                let Some(first) = first else {
                    return Err(SqlError::new(Condition::InvalidEscapeSequence, "invalid Unicode escape")
                        .with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
                        .with_position(char_position(self.sql, escape_at)));
                };
                let c = match first {
                    0xd800..0xdc00 if self.byte(0) == Some(b'\\') => {
                        let digits = if self.byte(1) == Some(b'U') { 8 } else { 4 };
                        self.position += 2.min(self.remaining().len());
                        while !self.sql.is_char_boundary(self.position) {
                            self.position += 1;
                        }
                        self.hex_digits(digits, digits).and_then(|second| combine_surrogates(first, second))
                    }
                    value => char::from_u32(value).filter(|c| *c != '\0'),
                };
                let Some(c) = c else {
                    let what = if (0xd800..0xe000).contains(&first) { "surrogate pair" } else { "escape value" };
                    return Err(SqlError::new(Condition::SyntaxError, format!("invalid Unicode {what}"))
                        .with_position(char_position(self.sql, escape_at)));
                };
                push_char(bytes, c);
            }
            c => push_char(bytes, c),
        }
        Ok(())
    }

    /// Reads `least` to `most` hexadecimal digits; `None`, with nothing consumed, if there are fewer.
    fn hex_digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let rest = self.remaining();
        let count = rest.bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
        let value = u32::from_str_radix(&rest[..count], 16).ok().filter(|_| count >= least)?;
        self.position += count;
        Some(value)
    }

    /// Reads an optional `UESCAPE 'c'`; the default is a backslash.
    fn unicode_escape(&mut self) -> SqlResult<char> {
        let end = self.position;
        self.skip_blanks()?;
        let word = self.remaining().get(..7).filter(|word| word.eq_ignore_ascii_case("uescape"));
        if word.is_none() {
            self.position = end;
            return Ok('\\');
        }
        self.position += 7;
        self.skip_blanks()?;
        let start = self.position;
        let text = if self.byte(0) == Some(b'\'') { self.plain_string()? } else { String::new() };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_ascii_hexdigit() && !matches!(c, '+' | '\'' | '"') && !c.is_ascii_whitespace() => {
                Ok(c)
            }
            _ => Err(self.error("invalid Unicode escape character", start)),
        }
    }
}

fn push_char(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Resolves `\XXXX` and `\+XXXXXX`; a doubled escape character stands for itself.
fn unescape_unicode(text: &str, escape: char) -> SqlResult<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut high: Option<u32> = None;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != escape || rest.starts_with(escape) {
            if high.is_some() {
                return Err(SqlError::new(Condition::SyntaxError, "invalid Unicode surrogate pair"));
            }
            if c == escape {
                rest = &rest[escape.len_utf8()..];
            }
            out.push(c);
            continue;
        }
        let (digits, prefix) = if rest.starts_with('+') { (6, 1) } else { (4, 0) };
        let value = rest
            .get(prefix..prefix + digits)
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let Some(value) = value else {
            return Err(SqlError::new(Condition::InvalidEscapeSequence, "invalid Unicode escape")
                .with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX."));
        };
        rest = &rest[prefix + digits..];
        match (high.take(), value) {
            (None, 0xd800..0xdc00) => high = Some(value),
            (Some(first), second) => out.push(
                combine_surrogates(first, second)
                    .ok_or_else(|| SqlError::new(Condition::SyntaxError, "invalid Unicode surrogate pair"))?,
            ),
            (None, value) => out.push(
                char::from_u32(value)
                    .filter(|c| *c != '\0')
                    .ok_or_else(|| SqlError::new(Condition::SyntaxError, "invalid Unicode escape value"))?,
            ),
        }
    }
    if high.is_some() {
        return Err(SqlError::new(Condition::SyntaxError, "invalid Unicode surrogate pair"));
    }
    Ok(out)
}

fn combine_surrogates(high: u32, low: u32) -> Option<char> {
    if !(0xdc00..0xe000).contains(&low) {
        return None;
    }
    char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
}
