//! One column of a shard being written, and parallel work on all columns.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use bytes::Bytes;
use parking_lot::Mutex;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, compute_leaves};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use tokio::task::spawn_blocking;
use types::SqlType;

use super::chunk::ChunkEncoder;
use crate::stats::ColumnStatsCollector;
use crate::stored_types::{stored_field, to_stored};
use crate::{ColumnDef, Error, Result};

/// Up to this many values are processed on the calling thread; handing them over would take longer.
const INLINE_VALUES_MAX: usize = 32_768;

/// Collects the statistics of a column and encodes its row groups.
pub(super) struct ColumnWriter {
    pub(super) column_def: ColumnDef,
    field: Field,
    stats_collector: ColumnStatsCollector,
    /// Values of the current page.
    pub(super) current_page_arrays: Vec<ArrayRef>,
    /// Encoder of the current row group.
    pub(super) chunk_encoder: Option<ColumnChunkEncoder>,
    /// Encoded row group, once it is closed.
    pub(super) encoded_chunk: Option<EncodedChunk>,
}

/// Encoder of a column chunk.
pub(super) enum ColumnChunkEncoder {
    /// Encoder of this crate.
    Direct(Box<ChunkEncoder>),
    /// Parquet's own writer, for types that `Direct` does not support.
    Parquet(Box<ArrowColumnWriter>),
}

/// Encoded column chunk.
pub(super) enum EncodedChunk {
    Chunk(Bytes, Box<ColumnCloseResult>),
    Parquet(Box<ArrowColumnChunk>),
}

impl EncodedChunk {
    /// Returns the chunk's metadata for the footer.
    pub(super) fn metadata(&self) -> &ColumnCloseResult {
        match self {
            Self::Chunk(_, close) => close,
            Self::Parquet(chunk) => chunk.close(),
        }
    }
}

impl ColumnWriter {
    pub(super) fn new(def: &ColumnDef) -> Self {
        Self {
            column_def: def.clone(),
            field: stored_field(def),
            stats_collector: ColumnStatsCollector::new(def.id, def.sql_type.clone()),
            current_page_arrays: Vec::new(),
            chunk_encoder: None,
            encoded_chunk: None,
        }
    }

    pub(super) fn sql_type(&self) -> &SqlType {
        &self.column_def.sql_type
    }

    pub(super) fn field(&self) -> &Field {
        &self.field
    }

    pub(super) fn stats_collector(&self) -> &ColumnStatsCollector {
        &self.stats_collector
    }

    pub(super) fn into_stats_collector(self) -> ColumnStatsCollector {
        self.stats_collector
    }

    /// Returns the approximate size of the current row group.
    pub(super) fn bytes(&self) -> usize {
        match &self.chunk_encoder {
            None => 0,
            Some(ColumnChunkEncoder::Direct(chunk)) => chunk.bytes(),
            Some(ColumnChunkEncoder::Parquet(writer)) => writer.get_estimated_total_bytes(),
        }
    }

    /// Adds the current page to the statistics.
    pub(super) fn collect_stats(&mut self) -> Result<()> {
        self.current_page_arrays.iter().try_for_each(|values| self.stats_collector.add(values))
    }

    /// Encodes the current page, whose statistics were collected.
    pub(super) fn encode(&mut self) -> Result<()> {
        let page = std::mem::take(&mut self.current_page_arrays);
        let bounds = self.stats_collector.end_page();
        match self.chunk_encoder.as_mut().expect("a row group was started") {
            ColumnChunkEncoder::Direct(chunk) => {
                chunk.add(&page, bounds.as_ref()).map_err(|error| self.column_def.failed(error))?
            }
            ColumnChunkEncoder::Parquet(writer) => {
                for values in page {
                    let stored = to_stored(&values)?;
                    for values in compute_leaves(&self.field, &stored).map_err(|error| self.column_def.failed(error))? {
                        writer.write(&values).map_err(|error| self.column_def.failed(error))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Collects statistics and encodes, while the values are in the CPU cache.
    pub(super) fn collect_and_encode(&mut self) -> Result<()> {
        self.collect_stats()?;
        self.encode()
    }

    /// Completes the current row group.
    pub(super) fn close(&mut self) -> Result<()> {
        let closed = match self.chunk_encoder.take().expect("a row group was started") {
            ColumnChunkEncoder::Direct(chunk) => {
                chunk.finish().map(|(bytes, close)| EncodedChunk::Chunk(bytes, Box::new(close)))
            }
            ColumnChunkEncoder::Parquet(writer) => writer.close().map(|chunk| EncodedChunk::Parquet(Box::new(chunk))),
        };
        self.encoded_chunk = Some(closed.map_err(|error| self.column_def.failed(error))?);
        Ok(())
    }
}

impl ColumnDef {
    fn failed(&self, source: ParquetError) -> Error {
        Error::Encode { object: format!("column \"{}\"", self.name), source }
    }
}

/// Runs `work` on each column, in parallel if there is enough of it, and returns the columns in order. `rows` is the
/// number of rows processed.
pub(super) async fn for_each_column(
    mut columns: Vec<ColumnWriter>,
    rows: usize,
    work: fn(&mut ColumnWriter) -> Result<()>,
) -> Result<Vec<ColumnWriter>> {
    if rows * columns.len() <= INLINE_VALUES_MAX {
        columns.iter_mut().try_for_each(work)?;
        return Ok(columns);
    }
    let workers = available_parallelism().map_or(1, NonZero::get).min(columns.len());
    // Threads take one column after the other, because columns differ in cost.
    let queue = Arc::new(Mutex::new(columns.into_iter().enumerate()));
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let queue = Arc::clone(&queue);
            spawn_blocking(move || {
                let mut done = Vec::new();
                loop {
                    let next = queue.lock().next();
                    let Some((index, mut column)) = next else { return Ok::<_, Error>(done) };
                    work(&mut column)?;
                    done.push((index, column));
                }
            })
        })
        .collect();
    let mut done = Vec::new();
    for task in tasks {
        done.extend(task.await.map_err(|error| Error::TaskEnded { reason: error.to_string() })??);
    }
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, column)| column).collect())
}
