//! Splits CSV as PostgreSQL does: quotes may open anywhere in a field, and only unquoted fields can be NULL.

use super::chunk_cutter::LineEnding;
use super::input_layout::DelimitedOptions;
use super::record_fields::{Fields, Span, SplitFailure};

/// Splitter of CSV text into records and fields.
#[derive(Debug)]
pub(super) struct CsvSplitter<'a> {
    text: &'a str,
    at: usize,
    delimited: &'a DelimitedOptions,
    quote: u8,
    escape: u8,
    eol: LineEnding,
    /// Bytes that end a run of plain text.
    is_special: [bool; 256],
}

impl<'a> CsvSplitter<'a> {
    pub(super) fn new(text: &'a str, delimited: &'a DelimitedOptions, quote: u8, escape: u8, eol: LineEnding) -> Self {
        let mut is_special = [false; 256];
        for byte in [delimited.delimiter, quote, b'\n', b'\r'] {
            is_special[usize::from(byte)] = true;
        }
        Self { text, at: 0, delimited, quote, escape, eol, is_special }
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
            let plain = bytes[start..].iter().position(|byte| self.is_special[usize::from(*byte)]);
            let mut end = plain.map_or(bytes.len(), |length| start + length);
            if end < bytes.len() && bytes[end] == self.quote {
                let span = self.read_quoted(start, end, fields)?;
                end = self.at;
                fields.push(self.match_marker(&self.text[start..end], true).unwrap_or(span));
            } else {
                fields.push(
                    self.match_marker(&self.text[start..end], false).unwrap_or_else(|| Span::in_chunk(start, end)),
                );
            }
            match bytes.get(end) {
                Some(byte) if *byte == self.delimited.delimiter => self.at = end + 1,
                _ => {
                    self.at = end + self.line_end_length(end)?;
                    return Ok(Some(fields.end_record(record, end)));
                }
            }
        }
    }

    /// Returns NULL or DEFAULT if the raw field is such a marker; a quoted field is never NULL.
    fn match_marker(&self, raw: &str, is_quoted: bool) -> Option<Span> {
        if !is_quoted && raw == self.delimited.null {
            return Some(Span::NULL);
        }
        self.delimited.default.as_deref().filter(|default| *default == raw).map(|_| Span::DEFAULT)
    }

    /// Reads a field that starts at `start` and has its first quote at `quote`; sets `self.at` to its end.
    fn read_quoted(&mut self, start: usize, quote: usize, fields: &mut Fields) -> Result<Span, SplitFailure> {
        let bytes = self.text.as_bytes();
        // Most quoted fields are quoted as a whole and contain no quote: nothing to rewrite.
        if start == quote {
            let inner = quote + 1;
            let close = memchr::memchr2(self.quote, self.escape, &bytes[inner..]).map(|length| inner + length);
            if let Some(close) = close.filter(|close| bytes[*close] == self.quote) {
                let is_end = bytes
                    .get(close + 1)
                    .is_none_or(|next| *next == self.delimited.delimiter || matches!(next, b'\n' | b'\r'));
                if is_end {
                    self.at = close + 1;
                    return Ok(Span::in_chunk(inner, close));
                }
            }
        }
        let from = fields.rewritten.len();
        // Text from `kept` on is not yet copied to the rewritten text.
        let (mut at, mut kept, mut in_quotes) = (quote, start, false);
        while let Some(byte) = bytes.get(at).copied() {
            if !in_quotes {
                if byte == self.delimited.delimiter || matches!(byte, b'\n' | b'\r') {
                    break;
                }
                if byte == self.quote {
                    fields.rewritten.push_str(&self.text[kept..at]);
                    kept = at + 1;
                    in_quotes = true;
                }
                at += 1;
                continue;
            }
            let next = bytes.get(at + 1).copied();
            if byte == self.escape && next.is_some_and(|next| next == self.quote || next == self.escape) {
                fields.rewritten.push_str(&self.text[kept..at]);
                // The escaped character itself is plain text.
                kept = at + 1;
                at += 2;
            } else {
                if byte == self.quote {
                    fields.rewritten.push_str(&self.text[kept..at]);
                    kept = at + 1;
                    in_quotes = false;
                }
                at += 1;
            }
        }
        if in_quotes {
            return Err(SplitFailure::bad_format("unterminated CSV quoted field").with_line_end(bytes.len()));
        }
        fields.rewritten.push_str(&self.text[kept..at]);
        self.at = at;
        Ok(Span::in_rewritten(from, fields.rewritten.len()))
    }

    /// Returns the length of the line end at `at`, 0 at the end of the text; other line endings are an error.
    fn line_end_length(&self, at: usize) -> Result<usize, SplitFailure> {
        let bytes = self.text.as_bytes();
        match (bytes.get(at), self.eol) {
            (None, _) => Ok(0),
            (Some(b'\n'), LineEnding::Lf) | (Some(b'\r'), LineEnding::Cr) => Ok(1),
            (Some(b'\r'), LineEnding::CrLf) if bytes.get(at + 1) == Some(&b'\n') => Ok(2),
            (Some(b'\r'), _) => Err(SplitFailure::bad_format("unquoted carriage return found in data")
                .with_hint("Use quoted CSV field to represent carriage return.")),
            _ => Err(SplitFailure::bad_format("unquoted newline found in data")
                .with_hint("Use quoted CSV field to represent newline.")),
        }
    }
}
