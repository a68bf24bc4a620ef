//! Table-driven tests of COPY FROM: options and input, and the expected rows or error. Each runs with several sizes of
//! pieces and chunks, which must not change the outcome.

mod binary;
mod csv;
mod lines;
mod samples;
mod text;

use std::sync::Arc;

use bytes::Bytes;
use executor::statement_progress::StatementProgress;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use types::text::DateContext;
use types::{SessionZone, SqlError, SqlType};
use value_codec::encode::TextEncoder;

use super::*;
use crate::fixtures::text_style;
use crate::from::parallel_parse::parse_rows;

/// COPY FROM under test.
pub(super) struct Copy {
    record_format: RecordFormat,
    columns: Vec<TargetColumn>,
    input: Option<String>,
    ignores_errors: bool,
    tolerance: ErrorPolicy,
}

/// Outcome: rows as text (`NULL` for NULL) joined by `|`, the number of skipped records, and notices.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) rows: Vec<String>,
    pub(super) skipped: u64,
    pub(super) notices: Vec<String>,
}

impl Copy {
    pub(super) fn new(record_format: RecordFormat, types: &[SqlType]) -> Copy {
        let columns = types
            .iter()
            .zip(["a", "b", "c", "d"])
            .map(|(sql_type, name)| TargetColumn {
                name: name.to_owned(),
                sql_type: sql_type.clone(),
                force_null: false,
                force_not_null: false,
                default: None,
            })
            .collect();
        Copy { record_format, columns, input: None, ignores_errors: false, tolerance: ErrorPolicy::default() }
    }

    pub(super) fn csv(types: &[SqlType]) -> Copy {
        Copy::new(RecordFormat::Csv { delimited: delimited(b',', ""), quote: b'"', escape: b'"' }, types)
    }

    pub(super) fn text(types: &[SqlType]) -> Copy {
        Copy::new(RecordFormat::Text(delimited(b'\t', "\\N")), types)
    }

    pub(super) fn delimited(mut self, change: impl FnOnce(&mut DelimitedOptions)) -> Copy {
        match &mut self.record_format {
            RecordFormat::Text(delimited) | RecordFormat::Csv { delimited, .. } => change(delimited),
            RecordFormat::Binary => unreachable!("binary has no delimited options"),
        }
        self
    }

    pub(super) fn column(mut self, index: usize, change: impl FnOnce(&mut TargetColumn)) -> Copy {
        change(&mut self.columns[index]);
        self
    }

    pub(super) fn file(mut self, name: &str) -> Copy {
        self.input = Some(name.to_owned());
        self
    }

    pub(super) fn ignoring(mut self, reject_limit: Option<u64>, is_verbose: bool) -> Copy {
        self.ignores_errors = true;
        self.tolerance = ErrorPolicy { reject_limit, is_verbose };
        self
    }

    /// Runs with all sizes of pieces and chunks, and asserts that the outcomes are equal.
    #[track_caller]
    pub(super) fn run(&self, input: impl AsRef<[u8]>) -> Result<Outcome, SqlError> {
        let input = input.as_ref();
        let whole = self.run_cut(input, input.len().max(1), 1 << 20);
        for (piece, chunk) in [(1, 1), (2, 1), (3, 8), (usize::MAX, 1), (1, 1 << 20)] {
            let cut = self.run_cut(input, piece.min(input.len().max(1)), chunk);
            assert_eq!(cut, whole, "pieces of {piece}, chunks of {chunk}");
        }
        whole
    }

    /// Returns the error context of each row of `input`, cut into the smallest chunks.
    pub(super) fn places(&self, input: impl AsRef<[u8]>) -> Vec<String> {
        let pieces =
            [Ok(InputItem::Open(self.input.clone())), Ok(InputItem::Bytes(Bytes::copy_from_slice(input.as_ref())))];
        let count = Arc::new(Mutex::new(ParseProgress::default()));
        let mut stream = parse_rows(
            self.layout(1),
            futures::stream::iter(pieces).boxed(),
            self.tolerance,
            Arc::clone(&count),
            Arc::new(StatementProgress::default()),
            CancellationToken::new(),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut places = Vec::new();
            while let Some(batch) = stream.next().await {
                let rows = batch.unwrap().num_rows();
                let last = count.lock().last_batch.take().unwrap();
                places.extend((0..rows).map(|row| last.row_context(row)));
            }
            places
        })
    }

    fn layout(&self, chunk_bytes: usize) -> Arc<InputLayout> {
        Arc::new(InputLayout {
            table: "t".to_owned(),
            schema: InputLayout::batch_schema(&self.columns),
            columns: self.columns.clone(),
            record_format: self.record_format.clone(),
            dates: DateContext::default(),
            skips_bad_records: self.ignores_errors,
            chunk_bytes,
        })
    }

    fn run_cut(&self, input: &[u8], piece: usize, chunk_bytes: usize) -> Result<Outcome, SqlError> {
        let layout = self.layout(chunk_bytes);
        let mut pieces = vec![Ok(InputItem::Open(self.input.clone()))];
        pieces.extend(input.chunks(piece).map(|piece| Ok(InputItem::Bytes(Bytes::copy_from_slice(piece)))));
        let count = Arc::new(Mutex::new(ParseProgress::default()));
        let stream = parse_rows(
            layout,
            futures::stream::iter(pieces).boxed(),
            self.tolerance,
            Arc::clone(&count),
            Arc::new(StatementProgress::default()),
            CancellationToken::new(),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let batches: Vec<_> = runtime.block_on(stream.try_collect())?;
        let mut rows = Vec::new();
        for batch in &batches {
            let mut encoders: Vec<_> = batch
                .columns()
                .iter()
                .zip(&self.columns)
                .map(|(values, column)| {
                    TextEncoder::new(values, &column.sql_type, &text_style(SessionZone::UTC)).unwrap()
                })
                .collect();
            for row in 0..batch.num_rows() {
                let fields: Vec<_> =
                    encoders.iter_mut().map(|encoder| encoder.text(row).unwrap_or("NULL").to_owned()).collect();
                rows.push(fields.join("|"));
            }
        }
        let count = count.lock();
        Ok(Outcome { rows, skipped: count.skipped, notices: count.notices.clone() })
    }

    /// Asserts that `input` gives exactly `rows`.
    #[track_caller]
    pub(super) fn gives(&self, input: impl AsRef<[u8]>, rows: &[&str]) {
        let outcome = self.run(input).unwrap_or_else(|error| panic!("failed: {error:?}"));
        assert_eq!(outcome.rows, rows);
    }

    /// Asserts that `input` fails with a message and a context.
    #[track_caller]
    pub(super) fn fails(&self, input: impl AsRef<[u8]>, message: &str, context: &str) -> SqlError {
        let error = self.run(input).expect_err("the input is wrong");
        assert_eq!((error.message.as_str(), error.context.as_deref().unwrap_or_default()), (message, context));
        error
    }
}

fn delimited(delimiter: u8, null: &str) -> DelimitedOptions {
    DelimitedOptions { delimiter, null: null.to_owned(), default: None, header: HeaderMode::Absent }
}

pub(super) const INT: SqlType = SqlType::Int4;
pub(super) const TEXT: SqlType = SqlType::Text;
