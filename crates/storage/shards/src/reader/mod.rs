//! Reads shards: the file's tail once, then row groups in parallel, of each only the wanted columns and pages.
//!
//! - `open_shard.rs`: opens a shard.
//! - `row_group_stream.rs`: reads a row group run by run; `fetch_rows.rs`: the size of a run.
//! - `fetch_pages.rs`: fetches and verifies pages.
//! - `batch_assembly.rs`: builds batches; `missing_values.rs`: values of columns that a shard lacks.
//! - `row_positions.rs`: row positions and deleted rows.

use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use objects::Objects;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use roaring::RoaringBitmap;
use types::{ColumnId, SqlType};

use crate::cache::PredicateOrder;
use crate::prune::{self, Pruning};
use crate::{Checksums, ColumnDef, Datum, Predicate, Result, ShardMeta};

mod batch_assembly;
mod fetch_pages;
mod fetch_rows;
mod missing_values;
mod open_shard;
mod row_group_stream;
mod row_positions;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use batch_assembly::{BatchAssembler, ColumnSource};
pub(crate) use fetch_pages::{FileLocation, PageChecksums, fetch};
use missing_values::MissingValue;
use row_group_stream::RowGroupStream;
pub(crate) use row_group_stream::catch_decoder_panic;

pub use fetch_rows::{FETCH_ROWS_MIN, remote_fetch_rows};
pub use missing_values::missing_value;
pub(crate) use row_positions::{ordinals_from_positions, row_ids_from_positions};

/// Opened shard or external file. Cheap to clone; clones share the parsed footer.
#[derive(Debug, Clone)]
pub struct ShardReader {
    /// Location of the file.
    location: FileLocation,
    file: Arc<OpenFile>,
}

/// Parsed tail of a file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) meta: Arc<ShardMeta>,
    /// Footer and page indexes; strings are read as string views.
    pub(crate) metadata: ArrowReaderMetadata,
    pub(crate) file_kind: FileKind,
    /// Id of each root column of the file: in a shard its field id.
    pub(crate) ids: Vec<Option<ColumnId>>,
}

/// Kind of a file.
#[derive(Debug)]
pub(crate) enum FileKind {
    /// Shard written by this crate.
    Shard { checksums: Checksums },
    /// External Parquet file.
    External {
        /// SQL type that each column's values are converted to; `None` for unused columns.
        types: Vec<Option<SqlType>>,
    },
}

/// Description of a read: rows, columns and filters of a row group.
#[derive(Debug, Clone)]
pub struct RowGroupRead {
    pub row_group: usize,
    /// Rows of the row group to read.
    pub rows: Range<usize>,
    /// Columns of the batches, in order; columns that the file lacks get their `missing` value.
    pub columns: Arc<[ColumnDef]>,
    /// Predicates for pruning: pages in which no row can pass all of them are skipped. Remaining rows are not tested.
    pub predicates: Vec<Predicate>,
    /// Positions of deleted rows of the shard.
    pub deleted: Option<Arc<RoaringBitmap>>,
    /// Rows per batch; the last batch of a run of pages has fewer.
    pub batch_rows: usize,
    /// Counter of fetched bytes.
    pub fetched_bytes: Arc<AtomicU64>,
    /// Counter of rows that predicates on blocks removed.
    pub removed_rows: Arc<AtomicU64>,
    /// Order in which predicates are tried on blocks.
    pub predicate_order: Arc<PredicateOrder>,
}

/// Result of [`ShardReader::read`]: the batches, and counts of what was pruned.
pub struct RowGroupRows {
    pub pruning: Pruning,
    pub batches: BoxStream<'static, Result<RecordBatch>>,
}

impl ShardReader {
    /// Opens a shard with one read of its tail.
    ///
    /// # Errors
    /// Errors of the storage; [`crate::Error::Damaged`] if the file is not the one that the catalog describes.
    pub async fn open(objects: &Objects, meta: &Arc<ShardMeta>) -> Result<Self> {
        let file = open_shard::open(objects, meta).await?;
        Ok(Self::new(FileLocation::Shard(objects.clone()), file))
    }

    pub(crate) fn new(place: FileLocation, file: OpenFile) -> Self {
        Self { location: place, file: Arc::new(file) }
    }

    /// Returns the metadata of the file.
    #[must_use]
    pub fn meta(&self) -> &Arc<ShardMeta> {
        &self.file.meta
    }

    /// Returns the memory size of the parsed footer in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.file.metadata.metadata().memory_size()
    }

    /// Returns the schema of batches of `columns`.
    #[must_use]
    pub fn schema(columns: &[ColumnDef]) -> SchemaRef {
        let field = |column: &ColumnDef| column.sql_type.arrow_field(&column.name, column.nullable);
        Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Reads rows of a row group, skipping pages that `predicates` rule out. The first pages are fetched immediately,
    /// the others as batches are requested, so that at most two runs of pages are in memory (`fetch_rows.rs`). Must be
    /// called in an async runtime.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] if the file lacks the row group or a `missing` value does not have its column's type.
    /// Batches fail on storage errors and on pages with a wrong checksum.
    pub fn read(&self, read: &RowGroupRead) -> Result<RowGroupRows> {
        let file = &self.file;
        file.check_row_group(read.row_group)?;
        let assembly = BatchAssembler::new(file, &read.columns)?;
        let kept = prune::matching_pages(file, read.row_group, &read.predicates)?;
        let pruning = prune::count_pruned(file, read, assembly.leaves(), &kept);
        let kept = prune::intersection(&kept, std::slice::from_ref(&read.rows));
        let segments = RowGroupStream::new(self, read, assembly, &kept)?;
        let batches = stream::try_unfold(segments, async |mut segments| {
            Ok(segments.next().await?.map(|batch| (batch, segments)))
        });
        Ok(RowGroupRows { pruning, batches: batches.boxed() })
    }

    /// Returns true for a shard in a local folder.
    pub(crate) fn is_local_shard(&self) -> bool {
        matches!(&self.location, FileLocation::Shard(objects) if objects.is_local())
    }

    /// Returns true if reads go over the network.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.location.is_remote()
    }

    pub(crate) fn location(&self) -> &FileLocation {
        &self.location
    }

    pub(crate) fn file(&self) -> &Arc<OpenFile> {
        &self.file
    }
}

/// Returns the missing value of a column, for shards older than it; `None` for NULL and for types without order.
pub(crate) fn missing_datum(column: &ColumnDef) -> Option<Datum> {
    MissingValue::new(column).ok()?.datum()
}

impl OpenFile {
    /// Returns the position in the shard of a row group's first row.
    pub(crate) fn first_row(&self, row_group: usize) -> u64 {
        (0..row_group).map(|before| self.rows(before) as u64).sum()
    }

    /// Returns the number of rows of a row group.
    pub(crate) fn rows(&self, row_group: usize) -> usize {
        let rows = self.metadata.metadata().row_group(row_group).num_rows();
        usize::try_from(rows).expect("row counts were checked when the file was opened")
    }

    /// Returns the row range of each page of a column.
    pub(crate) fn page_rows(&self, row_group: usize, leaf: usize) -> Vec<Range<usize>> {
        let rows = self.rows(row_group);
        let Some(index) = self.metadata.metadata().offset_index() else {
            return iter::once(0..rows).collect();
        };
        let starts = index[row_group][leaf].page_locations().iter().map(|page| page.first_row_index);
        let starts: Vec<usize> = starts.map(|start| usize::try_from(start).unwrap_or(rows).min(rows)).collect();
        let ends = starts.iter().copied().skip(1).chain([rows]);
        starts.iter().zip(ends).map(|(start, end)| *start..end.max(*start)).collect()
    }
}
