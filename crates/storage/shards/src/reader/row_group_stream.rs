//! Reads a row group run by run: the next run of pages is fetched while one is decoded.

use std::collections::VecDeque;
use std::iter;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::filter_record_batch;
use bytes::Bytes;
use parquet::DecodeResult;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::errors::ParquetError;
use tokio::task::JoinSet;

use super::batch_assembly::BatchAssembler;
use super::fetch_pages::{PageChecksums, fetch};
use super::row_positions::RowPositions;
use super::{RowGroupRead, ShardReader};
use crate::{Error, Result};

/// Read of a row group in progress.
pub(super) struct RowGroupStream {
    reader: ShardReader,
    row_group: usize,
    batch_rows: usize,
    batch_assembler: BatchAssembler,
    pages: Arc<PageChecksums>,
    /// Rows of the runs that are left; each run is a list of ascending ranges.
    remaining_runs: VecDeque<Vec<Range<usize>>>,
    /// Decoder of the current run.
    current_decoder: Option<ParquetPushDecoder>,
    /// Next run, whose bytes are being fetched.
    next_run: Option<PendingRun>,
    /// Number of rows left if no column is read from the file.
    rows_without_columns: usize,
    /// Positions of the rows that are left.
    positions: RowPositions,
}

/// Run whose bytes are being fetched.
struct PendingRun {
    decoder: ParquetPushDecoder,
    ranges: Vec<Range<u64>>,
    /// The fetching task, aborted when this set is dropped.
    fetching: JoinSet<Result<Vec<Bytes>>>,
}

impl RowGroupStream {
    /// Starts fetching the first run.
    pub(super) fn new(
        reader: &ShardReader,
        read: &RowGroupRead,
        batch_assembler: BatchAssembler,
        kept: &[Range<usize>],
    ) -> Result<Self> {
        let is_bare = batch_assembler.leaves().is_empty();
        let bare_rows = if is_bare { kept.iter().map(ExactSizeIterator::len).sum() } else { 0 };
        let pages = PageChecksums::new(reader.file(), read.row_group, batch_assembler.leaves(), &read.fetched_bytes);
        let rows = reader.fetch_rows(read.row_group, batch_assembler.leaves());
        let mut segments = Self {
            reader: reader.clone(),
            row_group: read.row_group,
            batch_rows: read.batch_rows.max(1),
            batch_assembler,
            pages: Arc::new(pages),
            remaining_runs: if is_bare { VecDeque::new() } else { split_into_runs(kept, rows) },
            current_decoder: None,
            next_run: None,
            rows_without_columns: bare_rows,
            positions: RowPositions::new(reader.file().first_row(read.row_group), kept, read.deleted.as_ref()),
        };
        segments.next_run = segments.start_fetch()?;
        Ok(segments)
    }

    /// Returns the next batch; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while 0 < self.rows_without_columns {
            let rows = self.rows_without_columns.min(self.batch_rows);
            self.rows_without_columns -= rows;
            if let Some(batch) = self.live_batch(rows, &[])? {
                return Ok(Some(batch));
            }
        }
        loop {
            let Some(decoder) = &mut self.current_decoder else {
                if !self.start_next_run().await? {
                    return if self.positions.is_finished() { Ok(None) } else { Err(self.too_few_rows_error()) };
                }
                continue;
            };
            match catch_decoder_panic(|| decoder.try_decode()).map_err(|source| self.decode_error(source))? {
                DecodeResult::Data(batch) => {
                    if let Some(batch) = self.live_batch(batch.num_rows(), batch.columns())? {
                        return Ok(Some(batch));
                    }
                }
                DecodeResult::NeedsData(ranges) => {
                    let bytes = fetch(self.reader.location(), self.reader.file(), &self.pages, &ranges).await?;
                    let pushed = self.current_decoder.as_mut().map(|decoder| decoder.push_ranges(ranges, bytes));
                    pushed.transpose().map_err(|source| self.decode_error(source))?;
                }
                DecodeResult::Finished => self.current_decoder = None,
            }
        }
    }

    /// Builds the batch of the next `rows` rows without deleted ones; `None` if all are deleted.
    fn live_batch(&mut self, rows: usize, decoded: &[ArrayRef]) -> Result<Option<RecordBatch>> {
        let places = self.positions.take(rows);
        let batch = self.batch_assembler.build_batch(&places, decoded)?;
        let batch = match self.positions.live_mask(&places) {
            Some(live) => filter_record_batch(&batch, &live)?,
            None => batch,
        };
        Ok(Some(batch).filter(|batch| 0 < batch.num_rows()))
    }

    /// Makes the next run current and starts fetching the one after it; returns false if there is none.
    async fn start_next_run(&mut self) -> Result<bool> {
        let Some(mut next) = self.next_run.take() else { return Ok(false) };
        self.next_run = self.start_fetch()?;
        if let Some(fetched) = next.fetching.join_next().await {
            let bytes = fetched.map_err(|error| Error::TaskEnded { reason: error.to_string() })??;
            next.decoder.push_ranges(next.ranges, bytes).map_err(|source| self.decode_error(source))?;
        }
        self.current_decoder = Some(next.decoder);
        Ok(true)
    }

    /// Starts fetching the first run that is left.
    fn start_fetch(&mut self) -> Result<Option<PendingRun>> {
        let Some(rows) = self.remaining_runs.pop_front() else { return Ok(None) };
        let mut decoder = self.decoder(rows).map_err(|source| self.decode_error(source))?;
        let mut fetching = JoinSet::new();
        let mut wanted = Vec::new();
        let opened = catch_decoder_panic(|| decoder.try_next_reader()).map_err(|source| self.decode_error(source))?;
        if let DecodeResult::NeedsData(ranges) = opened {
            let (reader, pages) = (self.reader.clone(), Arc::clone(&self.pages));
            wanted.clone_from(&ranges);
            fetching.spawn(async move { fetch(reader.location(), reader.file(), &pages, &ranges).await });
        }
        Ok(Some(PendingRun { decoder, ranges: wanted, fetching }))
    }

    /// Builds the decoder for the rows of a run.
    fn decoder(&self, rows: Vec<Range<usize>>) -> Result<ParquetPushDecoder, ParquetError> {
        let file = self.reader.file();
        let total = file.rows(self.row_group);
        let builder = ParquetPushDecoderBuilder::new_with_metadata(file.metadata.clone())
            .with_row_groups(vec![self.row_group])
            .with_projection(self.batch_assembler.projection(file))
            .with_batch_size(self.batch_rows);
        let is_whole = rows.len() == 1 && rows[0] == (0..total);
        let selection = RowSelection::from_consecutive_ranges(rows.into_iter(), total);
        if is_whole { builder.build() } else { builder.with_row_selection(selection).build() }
    }

    /// Returns the error for pages with too few rows.
    fn too_few_rows_error(&self) -> Error {
        let reason = "its pages hold fewer rows than its footer says".to_owned();
        Error::Damaged { object: self.reader.file().meta.object.clone(), reason }
    }

    fn decode_error(&self, source: ParquetError) -> Error {
        Error::Decode { object: self.reader.file().meta.object.clone(), source }
    }
}

/// Runs a decoder on untrusted bytes; a panic becomes an error.
pub(crate) fn catch_decoder_panic<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let damaged = |_| Err(ParquetError::General("the decoder panicked on inconsistent bytes".to_owned()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(damaged)
}

/// Splits row ranges into runs at multiples of `rows`.
pub(super) fn split_into_runs(kept: &[Range<usize>], rows: usize) -> VecDeque<Vec<Range<usize>>> {
    let mut segments: VecDeque<Vec<Range<usize>>> = VecDeque::new();
    let mut number = None;
    for range in kept {
        let mut start = range.start;
        while start < range.end {
            let segment = start / rows;
            let end = range.end.min((segment + 1).saturating_mul(rows));
            match segments.back_mut() {
                Some(last) if number == Some(segment) => last.push(start..end),
                _ => segments.push_back(iter::once(start..end).collect()),
            }
            number = Some(segment);
            start = end;
        }
    }
    segments
}
