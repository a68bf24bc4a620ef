//! Parses the inputs to a stream of batches: cuts chunks, parses them in parallel, and applies ON_ERROR.

use std::sync::Arc;
use std::thread::available_parallelism;

use arrow::array::RecordBatch;
use executor::statement_progress::StatementProgress;
use futures::stream::{BoxStream, StreamExt};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use types::{Condition, SqlError, SqlResult};

use super::chunk_cutter::Chunk;
use super::error_context::InputOrigin;
use super::input_layout::InputLayout;
use super::parse_chunk::{ParsedChunk, parse_chunk, record_context};
use super::record_chunks::{InputStream, cut_chunks};

/// Progress of parsing that the COPY reads at its end.
#[derive(Debug, Default)]
pub(crate) struct ParseProgress {
    /// Number of records that ON_ERROR ignore skipped.
    pub(crate) skipped: u64,
    /// Notice for each skipped record, with LOG_VERBOSITY verbose.
    pub(crate) notices: Vec<String>,
    /// Last batch, for the context of a row that violates a constraint.
    pub(crate) last_batch: Option<ParsedBatch>,
}

/// Parsed batch with its chunk.
#[derive(Debug)]
pub(crate) struct ParsedBatch {
    pub(crate) batch: RecordBatch,
    layout: Arc<InputLayout>,
    origin: Arc<InputOrigin>,
    chunk: Chunk,
    /// Indices of the records that became rows; `None` for all.
    record_indices: Option<Vec<usize>>,
}

impl ParsedBatch {
    /// Returns the error context of a row of the batch.
    pub(crate) fn row_context(&self, row: usize) -> String {
        let record = self.record_indices.as_ref().map_or(row, |kept| kept[row]);
        record_context(&self.layout, &self.origin, &self.chunk, record)
    }
}

/// Limits of ON_ERROR ignore.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ErrorPolicy {
    /// REJECT_LIMIT: number of skipped records beyond which the COPY fails.
    pub(crate) reject_limit: Option<u64>,
    /// True for LOG_VERBOSITY verbose: each skipped record gets a notice.
    pub(crate) is_verbose: bool,
}

/// Parses all inputs to a stream of batches in input order; the next chunks are parsed while a batch is consumed.
pub(crate) fn parse_rows(
    layout: Arc<InputLayout>,
    pieces: InputStream,
    tolerance: ErrorPolicy,
    count: Arc<Mutex<ParseProgress>>,
    progress: Arc<StatementProgress>,
    cancel: CancellationToken,
) -> BoxStream<'static, SqlResult<RecordBatch>> {
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let chunks = cut_chunks(Arc::clone(&layout), pieces, Arc::clone(&progress), cancel);
    let parsed = chunks
        .map(move |chunk| {
            let layout = Arc::clone(&layout);
            async move {
                let (origin, chunk) = chunk?;
                spawn_blocking(move || {
                    let ParsedChunk { batch, skipped, record_indices: kept } = parse_chunk(&layout, &origin, &chunk)?;
                    Ok::<_, SqlError>((ParsedBatch { batch, layout, origin, chunk, record_indices: kept }, skipped))
                })
                .await
                .map_err(|error| SqlError::internal(format!("a parser task of COPY FROM failed: {error}")))?
            }
        })
        // One more than cores, so that no core idles while the oldest chunk's batch is consumed.
        .buffered(cores + 1);
    let counted = parsed.map(move |parsed| {
        let (given, skipped) = parsed?;
        let batch = given.batch.clone();
        progress.add_tuples(batch.num_rows());
        let mut count = count.lock();
        count.last_batch = Some(given);
        if !skipped.is_empty() {
            progress.add_skipped(skipped.len());
            count.skipped += u64::try_from(skipped.len()).expect("a count fits 64 bits");
            if tolerance.is_verbose {
                count.notices.extend(skipped.iter().map(|record| {
                    let value =
                        record.value.as_ref().map_or_else(|| "null input".to_owned(), |value| format!("\"{value}\""));
                    format!(
                        "skipping row due to data type incompatibility at line {} for column \"{}\": {value}",
                        record.line, record.column
                    )
                }));
            }
            if let Some(limit) = tolerance.reject_limit.filter(|limit| count.skipped > *limit) {
                return Err(SqlError::new(
                    Condition::InvalidTextRepresentation,
                    format!("skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility"),
                ));
            }
        }
        Ok(batch)
    });
    // The stream must end after an error.
    counted
        .scan(false, |failed, batch| {
            let next = (!*failed).then_some(batch);
            *failed |= matches!(next, Some(Err(_)));
            std::future::ready(next)
        })
        .boxed()
}
