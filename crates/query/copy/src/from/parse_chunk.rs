//! Parses one chunk of text, CSV or binary to one batch, independently of other chunks.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use types::{Condition, SqlError, SqlResult};
use value_codec::decode::{ColumnBuilder, invalid_utf8};

use super::binary_boundaries::{RecordVerdict, bad_format, header_length, measure_record};
use super::chunk_cutter::{Chunk, LineEnding};
use super::error_context::{ErrorLocation, InputOrigin};
use super::header;
use super::input_layout::{DelimitedOptions, HeaderMode, InputLayout, RecordFormat, TargetColumn};
use super::record_fields::{Field, Fields, Span, SplitFailure};
use super::split_csv::CsvSplitter;
use super::split_text::TextSplitter;

/// Result of parsing a chunk.
#[derive(Debug)]
pub(super) struct ParsedChunk {
    pub(super) batch: RecordBatch,
    /// Records skipped because of an invalid value.
    pub(super) skipped: Vec<SkippedRecord>,
    /// Indices of the records that became rows; `None` for all.
    pub(super) record_indices: Option<Vec<usize>>,
}

/// Skipped record, with its first invalid value.
#[derive(Debug)]
pub(super) struct SkippedRecord {
    pub(super) line: u64,
    pub(super) column: String,
    pub(super) value: Option<String>,
}

/// Parses a chunk of the input `origin`.
pub(super) fn parse_chunk(layout: &InputLayout, origin: &InputOrigin, chunk: &Chunk) -> SqlResult<ParsedChunk> {
    match &layout.record_format {
        RecordFormat::Binary => parse_binary(layout, origin, chunk),
        RecordFormat::Text(delimited) | RecordFormat::Csv { delimited, .. } => {
            parse_lines(layout, origin, chunk, delimited)
        }
    }
}

/// Returns the error context of a record in a chunk that parsed without errors: its line, with its text unless binary.
pub(super) fn record_context(layout: &InputLayout, origin: &InputOrigin, chunk: &Chunk, record: usize) -> String {
    let (text, _) = split_valid_text(&chunk.bytes);
    let (RecordFormat::Text(delimited) | RecordFormat::Csv { delimited, .. }) = &layout.record_format else {
        return origin
            .context(chunk.first_line + u64::try_from(record).expect("a count fits 64 bits"), ErrorLocation::Line);
    };
    let mut splitter = Splitter::new(layout, text, delimited, chunk.eol);
    let has_header = chunk.is_first && delimited.header != HeaderMode::Absent;
    if has_header {
        // The header was checked when the chunk was parsed.
        let _ = splitter.split_record(&mut Fields::new(usize::from(u16::MAX), 0));
    }
    let mut fields = Fields::new(layout.columns.len(), text.len());
    while fields.len() <= record && matches!(splitter.split_record(&mut fields), Ok(Some(_))) {}
    let lines = LineNumbers { chunk, text, counts_newlines: matches!(layout.record_format, RecordFormat::Csv { .. }) };
    let record = record.min(fields.len().saturating_sub(1));
    origin.context(lines.line_number(record, &fields, has_header), ErrorLocation::Text(&text[fields.record(record)]))
}

/// Splitter of text or CSV.
enum Splitter<'a> {
    Text(TextSplitter<'a>),
    Csv(CsvSplitter<'a>),
}

impl<'a> Splitter<'a> {
    fn new(layout: &InputLayout, text: &'a str, delimited: &'a DelimitedOptions, eol: LineEnding) -> Self {
        match &layout.record_format {
            RecordFormat::Csv { quote, escape, .. } => {
                Splitter::Csv(CsvSplitter::new(text, delimited, *quote, *escape, eol))
            }
            RecordFormat::Text(_) | RecordFormat::Binary => Splitter::Text(TextSplitter::new(text, delimited, eol)),
        }
    }

    fn position(&self) -> usize {
        match self {
            Splitter::Text(splitter) => splitter.position(),
            Splitter::Csv(splitter) => splitter.position(),
        }
    }

    fn split_record(&mut self, fields: &mut Fields) -> Result<Option<usize>, SplitFailure> {
        match self {
            Splitter::Text(splitter) => splitter.split_record(fields),
            Splitter::Csv(splitter) => splitter.split_record(fields),
        }
    }
}

fn parse_lines(
    layout: &InputLayout,
    origin: &InputOrigin,
    chunk: &Chunk,
    delimited: &DelimitedOptions,
) -> SqlResult<ParsedChunk> {
    let (text, broken) = split_valid_text(&chunk.bytes);
    let mut splitter = Splitter::new(layout, text, delimited, chunk.eol);
    let is_csv = matches!(layout.record_format, RecordFormat::Csv { .. });
    let lines = LineNumbers { chunk, text, counts_newlines: is_csv };
    let has_header = chunk.is_first && delimited.header != HeaderMode::Absent;
    if has_header {
        // With any number of fields, because the check includes their number.
        let mut names = Fields::new(usize::from(u16::MAX), 0);
        let end = splitter
            .split_record(&mut names)
            .map_err(|failure| origin.with_context(failure.error, 1, ErrorLocation::Line))?;
        if let (HeaderMode::Match, Some(count)) = (delimited.header, end) {
            header::check_header(&names, text, count, &layout.columns, &delimited.null)
                .map_err(|error| origin.with_context(error, 1, ErrorLocation::Text(&text[names.record(0)])))?;
        }
    }
    let width = layout.columns.len();
    let mut fields = Fields::new(width, text.len());
    let mut failure = loop {
        let start = splitter.position();
        match splitter.split_record(&mut fields) {
            Ok(None) => break None,
            Ok(Some(count)) if count == width => {}
            Ok(Some(count)) => {
                let end = fields.record(fields.len() - 1).end;
                break Some(wrong_width(count, &layout.columns).with_line_end(end));
            }
            Err(failure) => {
                let end = failure.line_end.unwrap_or_else(|| {
                    memchr::memchr2(b'\n', b'\r', &text.as_bytes()[start..]).map_or(text.len(), |length| start + length)
                });
                fields.end_record(start, end);
                break Some(failure);
            }
        }
    };
    if let Some(error) = broken {
        // Invalid bytes may have truncated the last record: report them instead of the record's error.
        let reaches_break = fields.len() > 0 && fields.record(fields.len() - 1).end == text.len();
        if failure.is_none() || reaches_break {
            if !reaches_break {
                fields.end_record(text.len(), text.len());
            }
            failure = Some(SplitFailure::new(error));
        }
    }
    let line_of = |record: usize| lines.line_number(record, &fields, has_header);
    let converted = convert(
        layout,
        origin,
        fields.len(),
        failure.as_ref().map(|failure| failure.complete_fields),
        &line_of,
        |builder, column, record| {
            let target = &layout.columns[column];
            let value = match fields.text(text, record, column) {
                Field::Null if target.force_not_null => Some(delimited.null.as_str()),
                Field::Null => None,
                Field::Value(value) if target.force_null && value == delimited.null => None,
                Field::Value(value) => Some(value),
                Field::Default => default_value(target)?,
            };
            match value {
                None => builder.push_null(),
                Some(value) => {
                    builder.push_text(value).map_err(|error| RejectedValue { error, value: Some(value.to_owned()) })?
                }
            }
            Ok(())
        },
    )?;
    match failure {
        None => Ok(converted),
        Some(failure) => {
            let record = fields.len() - 1;
            let part = match failure.line_end {
                Some(end) => ErrorLocation::Text(&text[fields.record(record).start..end]),
                None => ErrorLocation::Line,
            };
            Err(origin.with_context(failure.error, line_of(record), part))
        }
    }
}

/// Returns the valid text at the start of `bytes`, and the error of the first invalid byte.
fn split_valid_text(bytes: &[u8]) -> (&str, Option<SqlError>) {
    let (text, mut broken) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let at = error.valid_up_to();
            let text = std::str::from_utf8(&bytes[..at]).expect("bytes before valid_up_to are UTF-8");
            (text, Some(invalid_utf8(bytes, at)))
        }
    };
    match memchr::memchr(0, text.as_bytes()) {
        None => (text, broken),
        Some(at) => {
            broken = Some(invalid_utf8(bytes, at));
            (&text[..at], broken)
        }
    }
}

/// Returns PostgreSQL's error for a record with a wrong number of fields.
fn wrong_width(count: usize, columns: &[TargetColumn]) -> SplitFailure {
    match columns.get(count) {
        Some(missing) => SplitFailure::bad_format(format!("missing data for column \"{}\"", missing.name))
            .with_complete_fields(count),
        None => SplitFailure::bad_format("extra data after last expected column"),
    }
}

/// Line numbers of a chunk, computed only for errors.
struct LineNumbers<'a> {
    chunk: &'a Chunk,
    text: &'a str,
    /// True for CSV, which counts newlines within quotes too; in text format a record is a line.
    counts_newlines: bool,
}

impl LineNumbers<'_> {
    /// Returns the number of the line on which `record` ends.
    fn line_number(&self, record: usize, fields: &Fields, has_header: bool) -> u64 {
        let before = if self.counts_newlines {
            let newline = if self.chunk.eol == LineEnding::Cr { b'\r' } else { b'\n' };
            memchr::memchr_iter(newline, &self.text.as_bytes()[..fields.record(record).end]).count()
        } else {
            record + usize::from(has_header)
        };
        self.chunk.first_line + u64::try_from(before).expect("a count fits 64 bits")
    }
}

fn parse_binary(layout: &InputLayout, origin: &InputOrigin, chunk: &Chunk) -> SqlResult<ParsedChunk> {
    let bytes = &chunk.bytes;
    let mut at = 0;
    if chunk.is_first {
        let unfinished = |bytes: &[u8]| match bytes.len() {
            0..11 => bad_format("COPY file signature not recognized"),
            11..15 => bad_format("invalid COPY file header (missing flags)"),
            15..19 => bad_format("invalid COPY file header (missing length)"),
            _ => bad_format("invalid COPY file header (wrong length)"),
        };
        at = header_length(bytes)?.ok_or_else(|| unfinished(bytes))?;
    }
    let width = layout.columns.len();
    let mut fields = Fields::new(width, bytes.len());
    let mut failure = None;
    while at < bytes.len() {
        let start = at;
        match measure_record(&bytes[at..], width) {
            RecordVerdict::Complete(length) => {
                at += size_of::<i16>();
                for _ in 0..width {
                    let value = at + size_of::<i32>();
                    let length = i32::from_be_bytes(bytes[at..value].try_into().expect("a length is four bytes"));
                    at = value;
                    match usize::try_from(length) {
                        Err(_) => fields.push(Span::NULL),
                        Ok(length) => {
                            at += length;
                            fields.push(Span::in_chunk(value, at));
                        }
                    }
                }
                at = start + length;
                fields.end_record(start, at);
            }
            // The cutter leaves the trailer out, so this is the end of a truncated input.
            RecordVerdict::Trailer | RecordVerdict::Partial => {
                failure = Some(bad_format("unexpected EOF in COPY data"));
                break;
            }
            RecordVerdict::Malformed => {
                failure = Some(malformed_record(&bytes[at..], width));
                break;
            }
        }
    }
    let line_of = |record: usize| chunk.first_line + u64::try_from(record).expect("a count fits 64 bits");
    let converted = convert(layout, origin, fields.len(), None, &line_of, |builder, column, record| {
        match fields.bytes(bytes, record, column) {
            None => builder.push_null(),
            Some(value) => builder.push_binary(value).map_err(|error| RejectedValue { error, value: None })?,
        }
        Ok(())
    })?;
    match failure {
        None => Ok(converted),
        Some(error) => Err(origin.with_context(error, line_of(fields.len()), ErrorLocation::Line)),
    }
}

/// Returns the error of a malformed binary record: a wrong field count or a negative length.
fn malformed_record(bytes: &[u8], width: usize) -> SqlError {
    match bytes.first_chunk::<2>().map(|count| i16::from_be_bytes(*count)) {
        Some(count) if usize::try_from(count).ok() != Some(width) => {
            bad_format(format!("row field count is {count}, expected {width}"))
        }
        _ => bad_format("invalid field size"),
    }
}

/// Value that its column does not accept.
struct RejectedValue {
    error: SqlError,
    /// Text of the value, if it can be shown.
    value: Option<String>,
}

impl From<SqlError> for RejectedValue {
    fn from(error: SqlError) -> Self {
        RejectedValue { error, value: None }
    }
}

/// Converts records to a batch, column by column, so that each loop handles one type.
///
/// Reports the error of the first record in the input. With `last_usable`, the last record is incomplete, and only so
/// many of its fields are converted.
fn convert(
    layout: &InputLayout,
    origin: &InputOrigin,
    records: usize,
    last_usable: Option<usize>,
    line_of: &dyn Fn(usize) -> u64,
    push: impl Fn(&mut ColumnBuilder, usize, usize) -> Result<(), RejectedValue>,
) -> SqlResult<ParsedChunk> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(layout.columns.len());
    let mut first_failure: Option<SqlError> = None;
    // First record with an error so far, or the end: later columns only need the records before it.
    let mut limit = records;
    let mut is_skipped = Vec::new();
    let mut skipped = Vec::new();
    for (column, target) in layout.columns.iter().enumerate() {
        let mut builder = ColumnBuilder::new(&target.sql_type, &layout.dates, limit);
        let usable = if last_usable.is_some_and(|usable| column >= usable) { limit.min(records - 1) } else { limit };
        for record in 0..usable {
            if is_skipped.get(record).copied().unwrap_or(false) {
                builder.push_null();
                continue;
            }
            let Err(rejected) = push(&mut builder, column, record) else { continue };
            let is_bad_value =
                !matches!(rejected.error.condition, Condition::FeatureNotSupported | Condition::InternalError);
            if layout.skips_bad_records && is_bad_value {
                builder.push_null();
                is_skipped.resize(records, false);
                is_skipped[record] = true;
                skipped.push(SkippedRecord {
                    line: line_of(record),
                    column: target.name.clone(),
                    value: rejected.value,
                });
                continue;
            }
            let part = match (&layout.record_format, &rejected.value) {
                (RecordFormat::Binary, _) => ErrorLocation::Column(&target.name),
                (_, value) => ErrorLocation::Value(&target.name, value.as_deref()),
            };
            first_failure = Some(origin.with_context(rejected.error, line_of(record), part));
            limit = record;
            break;
        }
        columns.push(builder.finish());
    }
    if let Some(error) = first_failure {
        return Err(error);
    }
    if last_usable.is_some() {
        // The columns have different lengths, and the caller reports an error anyway.
        return Ok(ParsedChunk {
            batch: RecordBatch::new_empty(Arc::clone(&layout.schema)),
            skipped,
            record_indices: None,
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(records));
    let built = RecordBatch::try_new_with_options(Arc::clone(&layout.schema), columns, &options).and_then(|batch| {
        if is_skipped.is_empty() {
            return Ok(batch);
        }
        let kept = BooleanBuffer::collect_bool(records, |record| !is_skipped[record]);
        filter_record_batch(&batch, &BooleanArray::new(kept, None))
    });
    let batch = built.map_err(|error| {
        SqlError::internal(format!("could not build a batch from the columns of a COPY chunk: {error}"))
    })?;
    skipped.sort_by_key(|record| record.line);
    let kept = (!is_skipped.is_empty()).then(|| (0..records).filter(|record| !is_skipped[*record]).collect());
    Ok(ParsedChunk { batch, skipped, record_indices: kept })
}

/// Returns the value of the DEFAULT marker in a column.
fn default_value(target: &TargetColumn) -> SqlResult<Option<&str>> {
    match &target.default {
        Some(text) => Ok(text.as_deref()),
        None => Err(bad_format("unexpected default marker in COPY data")
            .with_detail(format!("Column \"{}\" has no default value.", target.name))),
    }
}
