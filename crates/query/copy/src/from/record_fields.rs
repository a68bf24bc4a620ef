//! Positions of the fields of a chunk's records: the result of splitting, before values are parsed.

use types::{Condition, SqlError};

/// Fields of consecutive records, `width` per record.
#[derive(Debug)]
pub(super) struct Fields {
    width: usize,
    spans: Vec<Span>,
    /// Text of fields that had to be rewritten: escapes resolved, quotes removed.
    pub(super) rewritten: String,
    /// Start and end of each record in the chunk, without its line end.
    records: Vec<(u32, u32)>,
    /// Number of fields of the record under construction.
    field_count: usize,
}

/// Position of a field: a range of the chunk or of the rewritten text, NULL, or the DEFAULT marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

/// Bit set in `start` of a span of rewritten text.
const REWRITTEN_BIT: u32 = 1 << 31;

impl Span {
    pub(super) const NULL: Span = Span { start: u32::MAX, end: 0 };
    pub(super) const DEFAULT: Span = Span { start: u32::MAX, end: 1 };

    pub(super) fn in_chunk(start: usize, end: usize) -> Span {
        Span { start: offset(start), end: offset(end) }
    }

    pub(super) fn in_rewritten(start: usize, end: usize) -> Span {
        Span { start: offset(start) | REWRITTEN_BIT, end: offset(end) }
    }
}

/// Value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<T> {
    Null,
    Default,
    Value(T),
}

/// Error that stopped splitting before the end of the chunk. The failed record is the last one of the fields.
#[derive(Debug)]
pub(super) struct SplitFailure {
    pub(super) error: SqlError,
    /// Number of complete fields of the failed record, which are converted before the failure is reported.
    pub(super) complete_fields: usize,
    /// End of the failed record if known, so that the error can show the line.
    pub(super) line_end: Option<usize>,
}

impl SplitFailure {
    /// Creates a failure without usable fields.
    pub(super) fn new(error: SqlError) -> SplitFailure {
        SplitFailure { error, complete_fields: 0, line_end: None }
    }

    /// Creates a failure with 22P04 and without usable fields.
    pub(super) fn bad_format(message: impl Into<String>) -> SplitFailure {
        SplitFailure::new(SqlError::new(Condition::BadCopyFileFormat, message))
    }

    pub(super) fn with_hint(mut self, hint: &str) -> SplitFailure {
        self.error = self.error.with_hint(hint);
        self
    }

    pub(super) fn with_complete_fields(mut self, fields: usize) -> SplitFailure {
        self.complete_fields = fields;
        self
    }

    pub(super) fn with_line_end(mut self, end: usize) -> SplitFailure {
        self.line_end = Some(end);
        self
    }
}

impl Fields {
    /// Creates fields without records, with capacity for about `bytes` of input.
    pub(super) fn new(width: usize, bytes: usize) -> Fields {
        // Assumes eight bytes per field.
        Fields {
            width,
            spans: Vec::with_capacity(bytes / 8 + width),
            rewritten: String::new(),
            records: Vec::with_capacity(bytes / 8 / width.max(1) + 1),
            field_count: 0,
        }
    }

    /// Adds a field to the record under construction; fields beyond the width are only counted.
    pub(super) fn push(&mut self, span: Span) {
        if self.field_count < self.width {
            self.spans.push(span);
        }
        self.field_count += 1;
    }

    /// Returns the index of the next field in the record under construction.
    pub(super) fn next_field(&self) -> usize {
        self.field_count
    }

    /// Ends the record at `start..end`, and returns its number of fields.
    pub(super) fn end_record(&mut self, start: usize, end: usize) -> usize {
        if self.field_count < self.width {
            self.spans.resize((self.records.len() + 1) * self.width, Span::NULL);
        }
        self.records.push((offset(start), offset(end)));
        std::mem::take(&mut self.field_count)
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the range of a record in the chunk.
    pub(super) fn record(&self, record: usize) -> std::ops::Range<usize> {
        let (start, end) = self.records[record];
        to_usize(start)..to_usize(end)
    }

    /// Returns a field as text; `chunk` is the text that was split.
    pub(super) fn text<'a>(&'a self, chunk: &'a str, record: usize, column: usize) -> Field<&'a str> {
        let span = self.spans[record * self.width + column];
        if span.start == u32::MAX {
            return if span == Span::NULL { Field::Null } else { Field::Default };
        }
        Field::Value(if span.start & REWRITTEN_BIT == 0 {
            &chunk[to_usize(span.start)..to_usize(span.end)]
        } else {
            &self.rewritten[to_usize(span.start & !REWRITTEN_BIT)..to_usize(span.end)]
        })
    }

    /// Returns a field as bytes of `chunk`, `None` for NULL.
    pub(super) fn bytes<'a>(&self, chunk: &'a [u8], record: usize, column: usize) -> Option<&'a [u8]> {
        let span = self.spans[record * self.width + column];
        (span.start != u32::MAX).then(|| &chunk[to_usize(span.start)..to_usize(span.end)])
    }
}

fn offset(position: usize) -> u32 {
    let position = u32::try_from(position).expect("a chunk is at most RECORD_MAX plus one piece");
    debug_assert!(position < REWRITTEN_BIT, "the top bit marks rewritten text");
    position
}

fn to_usize(position: u32) -> usize {
    usize::try_from(position).expect("32 bits fit a usize")
}
