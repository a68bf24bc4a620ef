//! A scan of a table: which shards it reads, which fresh rows, and what of them.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use catalog::TableRows;
use datafusion::common::Statistics;
use objects::Objects;
use roaring::RoaringBitmap;
use rowstore::Row;
use session_context::Pin;
use shards::{ColumnDef, Predicate, SEGMENT_ROWS, ShardMeta, ShardReader, TableCache, far_stretch_rows};
use types::{ColumnId, RowId};

use crate::by_key::{FreshRows, Keyed};
use crate::fragment_cache::FragmentCache;
use crate::opened::OpenedShards;
use crate::parts::Parts;

/// Parts that there are for each thread at least, so that all are done at about the same time.
const PARTS_OF_THREAD: usize = 4;

/// What a scan reads: the same for all of its partitions.
#[derive(Debug)]
pub struct Scan {
    pub objects: Objects,
    pub opened: Arc<OpenedShards>,
    pub blocks: TableCache,
    /// Groups of shards that queries have made.
    pub fragments: Arc<FragmentCache>,
    pub table: Arc<catalog::Table>,
    /// The columns of the batches, in order.
    pub columns: Arc<[ColumnDef]>,
    /// All columns of the table.
    pub table_columns: Arc<[ColumnDef]>,
    /// Rows that fail them may be left out.
    pub predicates: Vec<Predicate>,
    /// The shards that are left, in the table's order.
    pub shards: Vec<ScanShard>,
    /// The column by which alone rows have buckets.
    pub bucketed_by: Option<ColumnId>,
    pub rows: Arc<TableRows>,
    /// The part of an index that says which fresh rows are wanted.
    pub(crate) keyed: Option<Keyed>,
    /// The fresh rows, listed when the first of them is read.
    pub(crate) fresh: OnceLock<FreshRows>,
    /// At most so many: how many a part of an index holds is known when they are read.
    pub(crate) fresh_rows_max: usize,
    /// Shards of the table.
    pub shard_count: usize,
    pub statistics: Statistics,
    /// Keeps the shards of a past state from being deleted.
    pub(crate) _pin: Option<Held>,
}

/// A pin, of which there is nothing to show.
pub(crate) struct Held(#[expect(dead_code, reason = "it is kept, not looked at")] pub(crate) Pin);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

/// A shard of a scan.
#[derive(Debug, Clone)]
pub struct ScanShard {
    pub meta: Arc<ShardMeta>,
    /// Its position among the table's shards.
    pub number: usize,
    /// Rows that are left out.
    pub deleted: Option<Arc<RoaringBitmap>>,
    /// And those that other processes read, as far as they lie among the scan's parts.
    pub of_others: Vec<Range<u32>>,
    /// The buckets that some of its rows are of, as bits; all where that is not known.
    pub buckets: u64,
    /// A file of an external table, which was opened when it was listed.
    pub file: Option<ShardReader>,
}

impl ScanShard {
    /// All rows that are left out.
    pub fn left_out(&self) -> Option<Arc<RoaringBitmap>> {
        if self.of_others.is_empty() {
            return self.deleted.clone();
        }
        let mut all = self.deleted.as_deref().cloned().unwrap_or_default();
        for rows in &self.of_others {
            all.insert_range(rows.clone());
        }
        Some(Arc::new(all))
    }
}

impl Scan {
    /// A few pages are a part. Of far files more, so that requests are worth the way, unless too few parts for all threads would be left.
    pub(crate) fn parts(&self, limit: Option<usize>, threads: usize) -> Parts {
        let is_far =
            |shard: &ScanShard| shard.file.as_ref().map_or_else(|| !self.objects.is_local(), ShardReader::is_far);
        let of_far = |shard: &ScanShard, row_group: usize| {
            if is_far(shard) { far_stretch_rows(&shard.meta, row_group, &self.columns) } else { SEGMENT_ROWS }
        };
        let parts = Parts::of(&self.shards, self.fresh_rows_max, limit, |_, _| SEGMENT_ROWS);
        if limit.is_some() || !self.shards.iter().any(is_far) {
            return parts;
        }
        let fewer = Parts::of(&self.shards, self.fresh_rows_max, limit, of_far);
        if fewer.len() < threads.saturating_mul(PARTS_OF_THREAD) { parts } else { fewer }
    }

    /// Whether there may be rows beside those of the shards.
    pub(crate) fn has_fresh_rows(&self) -> bool {
        // A scan from another process has them listed, and nothing else of the table's rows.
        self.fresh.get().is_some_and(|fresh| !fresh.is_empty())
            || self.rows.fresh.len() + self.rows.own.layer.len() != self.rows.own.layer.gone_len()
    }

    /// The fresh rows in a fixed order.
    pub fn fresh(&self) -> &[(RowId, Arc<Row>)] {
        self.fresh.get_or_init(|| match &self.keyed {
            Some(keyed) => keyed.rows(&self.rows, usize::MAX),
            None => self.rows.fresh_rows().map(|(id, row)| (id, Arc::clone(row))).collect(),
        })
    }
}
