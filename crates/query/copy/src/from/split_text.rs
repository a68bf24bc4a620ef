//! Splits PostgreSQL's text format: one record per line, backslash escapes, `\N` for NULL by default.

use value_codec::decode::check_utf8;

use super::chunk_cutter::LineEnding;
use super::input_layout::DelimitedOptions;
use super::record_fields::{Fields, Span, SplitFailure};

/// Splitter of text format into records and fields.
#[derive(Debug)]
pub(super) struct TextSplitter<'a> {
    text: &'a str,
    at: usize,
    delimited: &'a DelimitedOptions,
    eol: LineEnding,
    /// Bytes that end a run of plain text.
    is_special: [bool; 256],
}

impl<'a> TextSplitter<'a> {
    pub(super) fn new(text: &'a str, delimited: &'a DelimitedOptions, eol: LineEnding) -> Self {
        let mut is_special = [false; 256];
        for byte in [delimited.delimiter, b'\\', b'\n', b'\r'] {
            is_special[usize::from(byte)] = true;
        }
        Self { text, at: 0, delimited, eol, is_special }
    }

    /// Returns the start of the next record.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Splits off the next record, and returns its number of fields; `None` at the end of the text.
    pub(super) fn split_record(&mut self, fields: &mut Fields) -> Result<Option<usize>, SplitFailure> {
        let bytes = self.text.as_bytes();
        if self.at >= bytes.len() {
            return Ok(None);
        }
        let record = self.at;
        loop {
            let start = self.at;
            let (end, has_escapes) = self.field_end(start)?;
            let raw = &self.text[start..end];
            let span = if raw == self.delimited.null {
                Span::NULL
            } else if self.delimited.default.as_deref() == Some(raw) {
                Span::DEFAULT
            } else if has_escapes {
                unescape(raw, fields)?
            } else {
                Span::in_chunk(start, end)
            };
            fields.push(span);
            match bytes.get(end) {
                Some(byte) if *byte == self.delimited.delimiter => self.at = end + 1,
                _ => {
                    self.at = end + self.line_end_length(end)?;
                    return Ok(Some(fields.end_record(record, end)));
                }
            }
        }
    }

    /// Returns the end of the field that starts at `start`, and whether it has escapes.
    fn field_end(&self, start: usize) -> Result<(usize, bool), SplitFailure> {
        let bytes = self.text.as_bytes();
        let mut at = start;
        let mut has_escapes = false;
        loop {
            match bytes[at..].iter().position(|byte| self.is_special[usize::from(*byte)]) {
                None => return Ok((bytes.len(), has_escapes)),
                Some(length) => at += length,
            }
            if bytes[at] != b'\\' {
                return Ok((at, has_escapes));
            }
            if bytes.get(at + 1) == Some(&b'.') {
                return Err(SplitFailure::bad_format("end-of-copy marker is not alone on its line"));
            }
            has_escapes = true;
            // An escaped character never ends a field; a backslash at the very end escapes nothing.
            let escaped = self.text[at + 1..].chars().next().map_or(0, char::len_utf8);
            at += 1 + escaped;
        }
    }

    /// Returns the length of the line end at `at`, 0 at the end of the text; other line endings are an error.
    fn line_end_length(&self, at: usize) -> Result<usize, SplitFailure> {
        let bytes = self.text.as_bytes();
        match (bytes.get(at), self.eol) {
            (None, _) => Ok(0),
            (Some(b'\n'), LineEnding::Lf) | (Some(b'\r'), LineEnding::Cr) => Ok(1),
            (Some(b'\r'), LineEnding::CrLf) if bytes.get(at + 1) == Some(&b'\n') => Ok(2),
            (Some(b'\r'), _) => Err(SplitFailure::bad_format("literal carriage return found in data")
                .with_hint("Use \"\\r\" to represent carriage return.")),
            _ => Err(SplitFailure::bad_format("literal newline found in data")
                .with_hint("Use \"\\n\" to represent newline.")),
        }
    }
}

/// Resolves the escapes of one field. If some are octal or hexadecimal, the result is checked to be UTF-8.
fn unescape(raw: &str, fields: &mut Fields) -> Result<Span, SplitFailure> {
    let from = fields.rewritten.len();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        fields.rewritten.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escaped) = rest.chars().next() else { break };
        match escaped {
            'b' => fields.rewritten.push('\x08'),
            'f' => fields.rewritten.push('\x0c'),
            'n' => fields.rewritten.push('\n'),
            'r' => fields.rewritten.push('\r'),
            't' => fields.rewritten.push('\t'),
            'v' => fields.rewritten.push('\x0b'),
            '0'..='7' => return unescape_bytes(raw, from, fields),
            'x' if rest.as_bytes().get(1).is_some_and(u8::is_ascii_hexdigit) => {
                return unescape_bytes(raw, from, fields);
            }
            other => fields.rewritten.push(other),
        }
        rest = &rest[escaped.len_utf8()..];
    }
    fields.rewritten.push_str(rest);
    Ok(Span::in_rewritten(from, fields.rewritten.len()))
}

/// Resolves the escapes of a field with octal or hexadecimal ones, and checks that the result is UTF-8.
fn unescape_bytes(raw: &str, from: usize, fields: &mut Fields) -> Result<Span, SplitFailure> {
    fields.rewritten.truncate(from);
    let raw = raw.as_bytes();
    let mut bytes = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(byte) = raw.get(at).copied() {
        at += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some(escaped) = raw.get(at).copied() else { break };
        at += 1;
        let digits = |at: usize, most: usize, base: u32| {
            raw[at..].iter().take(most).take_while(|digit| char::from(**digit).is_digit(base)).count()
        };
        let number = |digits: &[u8], base: u32| {
            let value = digits.iter().fold(0, |value, digit| {
                value * base + char::from(*digit).to_digit(base).expect("only digits were counted")
            });
            u8::try_from(value & 0xff).expect("the low eight bits")
        };
        bytes.push(match escaped {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'0'..=b'7' => {
                let start = at - 1;
                at = start + digits(start, 3, 8);
                number(&raw[start..at], 8)
            }
            b'x' => match digits(at, 2, 16) {
                0 => b'x',
                count => {
                    at += count;
                    number(&raw[at - count..at], 16)
                }
            },
            other => other,
        });
    }
    let text =
        check_utf8(&bytes).map_err(|error| SplitFailure::new(error).with_complete_fields(fields.next_field()))?;
    fields.rewritten.push_str(text);
    Ok(Span::in_rewritten(from, fields.rewritten.len()))
}
