//! Reads a shard: its tail once, then row groups in parallel, of each only the columns and pages that are wanted.

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

mod columns;
mod fetch;
mod missing;
mod open;
mod positions;
mod segments;
mod stretch;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use columns::{Assembly, Source};
pub(crate) use fetch::{Pages, Place, fetch};
use missing::Missing;
use segments::Segments;
pub(crate) use segments::guarded;

pub use missing::missing_value;
pub(crate) use positions::{ordinals_of, row_ids_of};
pub use stretch::{SEGMENT_ROWS, far_stretch_rows};

/// An opened shard, or a file of others that is opened like one. Cheap to clone; clones share what was read of the file's tail.
#[derive(Debug, Clone)]
pub struct ShardReader {
    place: Place,
    file: Arc<File>,
}

/// What a file's tail says.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) meta: Arc<ShardMeta>,
    /// The footer and the page indexes; text is read as views.
    pub(crate) metadata: ArrowReaderMetadata,
    pub(crate) origin: Origin,
    /// The id of each column of the file: in a shard its field id.
    pub(crate) ids: Vec<Option<ColumnId>>,
}

/// Who wrote a file.
#[derive(Debug)]
pub(crate) enum Origin {
    Shard {
        checksums: Checksums,
    },
    Foreign {
        /// For each column of the file the type that its values become, where somebody wants it.
        types: Vec<Option<SqlType>>,
    },
}

/// Part of a shard as it is to be read.
#[derive(Debug, Clone)]
pub struct RowGroupRead {
    pub row_group: usize,
    /// Which of the row group's rows.
    pub rows: Range<usize>,
    /// The columns of the batches, in order; those that the file lacks hold their `missing` value.
    pub columns: Arc<[ColumnDef]>,
    /// Pages in which no row can pass all of these are left out; the rows that remain are not tested.
    pub predicates: Vec<Predicate>,
    /// Rows of the shard that are left out.
    pub deleted: Option<Arc<RoaringBitmap>>,
    /// Rows of a batch, the last of a stretch of pages has fewer.
    pub batch_rows: usize,
    /// Bytes are added as they are fetched.
    pub fetched_bytes: Arc<AtomicU64>,
    /// Rows that blocks leave out because they do not pass the predicates are added.
    pub removed_rows: Arc<AtomicU64>,
    /// In which order blocks try the predicates.
    pub order: Arc<PredicateOrder>,
}

/// What a read gives, and how much of the row group it skips.
pub struct RowGroupRows {
    pub pruning: Pruning,
    pub batches: BoxStream<'static, Result<RecordBatch>>,
}

impl ShardReader {
    /// Opens the shard by one read of its tail.
    ///
    /// # Errors
    /// What the storage reports; [`crate::Error::Damaged`] where the file is not the one that the catalog describes.
    pub async fn open(objects: &Objects, meta: &Arc<ShardMeta>) -> Result<Self> {
        let file = open::open(objects, meta).await?;
        Ok(Self::of(Place::Shard(objects.clone()), file))
    }

    pub(crate) fn of(place: Place, file: File) -> Self {
        Self { place, file: Arc::new(file) }
    }

    /// What is known of the file.
    #[must_use]
    pub fn meta(&self) -> &Arc<ShardMeta> {
        &self.file.meta
    }

    /// Bytes of memory that the opened shard takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.file.metadata.metadata().memory_size()
    }

    /// The schema of the batches of `columns`.
    #[must_use]
    pub fn schema(columns: &[ColumnDef]) -> SchemaRef {
        let field = |column: &ColumnDef| column.sql_type.arrow_field(&column.name, column.nullable);
        Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Reads rows of a row group, skipping the pages that `predicates` rule out. The first pages are fetched from now on, the
    /// others as batches are asked for: no more than two stretches at once lie in memory (`stretch.rs`). Belongs on a
    /// runtime.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] where the file lacks the row group or a `missing` value is none of its column's type. Batches
    /// fail for what the storage reports and for pages without their checksum.
    pub fn read(&self, read: &RowGroupRead) -> Result<RowGroupRows> {
        let file = &self.file;
        file.check_row_group(read.row_group)?;
        let assembly = Assembly::new(file, &read.columns)?;
        let kept = prune::pages(file, read.row_group, &read.predicates)?;
        let pruning = prune::counted(file, read, assembly.leaves(), &kept);
        let kept = prune::intersection(&kept, std::slice::from_ref(&read.rows));
        let segments = Segments::new(self, read, assembly, &kept)?;
        let batches = stream::try_unfold(segments, async |mut segments| {
            Ok(segments.next().await?.map(|batch| (batch, segments)))
        });
        Ok(RowGroupRows { pruning, batches: batches.boxed() })
    }

    /// Whether it is a shard on a disk of this machine.
    pub(crate) fn is_near(&self) -> bool {
        matches!(&self.place, Place::Shard(objects) if objects.is_local())
    }

    /// Whether reading it takes requests over the network.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.place.is_far()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

/// The value of a column in shards that lack it, where statistics can compare it; `None` for NULL too.
pub(crate) fn missing_datum(column: &ColumnDef) -> Option<Datum> {
    Missing::new(column).ok()?.datum()
}

impl File {
    /// The place in the shard of a row group's first row.
    pub(crate) fn first_row(&self, row_group: usize) -> u64 {
        (0..row_group).map(|before| self.rows(before) as u64).sum()
    }

    /// Rows of a row group.
    pub(crate) fn rows(&self, row_group: usize) -> usize {
        let rows = self.metadata.metadata().row_group(row_group).num_rows();
        usize::try_from(rows).expect("checked when the file was opened")
    }

    /// The rows of each page of a column.
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
