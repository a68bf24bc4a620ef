//! Description of a table scan: its shards, unflushed rows, columns and predicates.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use catalog::TableRows;
use datafusion::common::Statistics;
use objects::Objects;
use roaring::RoaringBitmap;
use rowstore::RowVersion;
use session_context::SnapshotPin;
use shards::{ColumnDef, FETCH_ROWS_MIN, Predicate, ShardMeta, ShardReader, TableCache, remote_fetch_rows};
use types::{ColumnId, RowId};

use crate::fragment_cache::FragmentCache;
use crate::open_shards::OpenShardCache;
use crate::scan_parts::Parts;
use crate::unflushed_by_index::{UnflushedIndexRange, UnflushedRows};

/// Minimum number of parts per thread, so that all threads end at about the same time.
const PARTS_PER_THREAD: usize = 4;

/// Data of a scan that all of its partitions share.
#[derive(Debug)]
pub struct Scan {
    pub objects: Objects,
    pub opened: Arc<OpenShardCache>,
    pub blocks: TableCache,
    /// Cache of groups aggregated per shard.
    pub fragments: Arc<FragmentCache>,
    pub table: Arc<catalog::Table>,
    /// Columns of the batches, in order.
    pub columns: Arc<[ColumnDef]>,
    /// All columns of the table.
    pub table_columns: Arc<[ColumnDef]>,
    /// Predicates: rows that fail them may be left out.
    pub predicates: Vec<Predicate>,
    /// Shards that were not pruned, in the order of the table.
    pub shards: Vec<ScanShard>,
    /// Only column of the distribution key, if it has just one.
    pub bucketed_by: Option<ColumnId>,
    pub rows: Arc<TableRows>,
    /// Index range that contains the wanted unflushed rows.
    pub(crate) unflushed_range: Option<UnflushedIndexRange>,
    /// Unflushed rows, listed when the first of them is read.
    pub(crate) unflushed: OnceLock<UnflushedRows>,
    /// Upper bound of the number of unflushed rows: those in an index range are counted only when they are read.
    pub(crate) unflushed_rows_max: usize,
    /// Number of shards of the table.
    pub shard_count: usize,
    pub statistics: Statistics,
    /// Pin that keeps the shards of a historical snapshot from being deleted.
    pub(crate) _pin: Option<OpaquePin>,
}

/// Pin with a `Debug` form that shows nothing.
pub(crate) struct OpaquePin(#[expect(dead_code, reason = "held until it is dropped")] pub(crate) SnapshotPin);

impl fmt::Debug for OpaquePin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpaquePin")
    }
}

/// Shard of a scan.
#[derive(Debug, Clone)]
pub struct ScanShard {
    pub meta: Arc<ShardMeta>,
    /// Position among the table's shards.
    pub table_position: usize,
    /// Deleted rows.
    pub deleted: Option<Arc<RoaringBitmap>>,
    /// Rows that other processes read, as far as they lie in parts of this scan.
    pub rows_read_elsewhere: Vec<Range<u32>>,
    /// Bit set of the buckets that its rows may belong to; all bits are set if they are unknown.
    pub buckets: u64,
    /// Reader of a file of an external table, opened when the file was listed.
    pub file: Option<ShardReader>,
}

impl ScanShard {
    /// Returns all rows to leave out: deleted ones and those that other processes read.
    pub fn excluded_rows(&self) -> Option<Arc<RoaringBitmap>> {
        if self.rows_read_elsewhere.is_empty() {
            return self.deleted.clone();
        }
        let mut all = self.deleted.as_deref().cloned().unwrap_or_default();
        for rows in &self.rows_read_elsewhere {
            all.insert_range(rows.clone());
        }
        Some(Arc::new(all))
    }
}

impl Scan {
    /// Cuts the scan into parts of a few pages. Parts of remote files are larger, so that each request is worth its
    /// latency, unless too few parts would be left for all threads.
    pub(crate) fn cut_parts(&self, limit: Option<usize>, threads: usize) -> Parts {
        let is_far =
            |shard: &ScanShard| shard.file.as_ref().map_or_else(|| !self.objects.is_local(), ShardReader::is_remote);
        let of_far = |shard: &ScanShard, row_group: usize| {
            if is_far(shard) { remote_fetch_rows(&shard.meta, row_group, &self.columns) } else { FETCH_ROWS_MIN }
        };
        let parts = Parts::cut(&self.shards, self.unflushed_rows_max, limit, |_, _| FETCH_ROWS_MIN);
        if limit.is_some() || !self.shards.iter().any(is_far) {
            return parts;
        }
        let fewer = Parts::cut(&self.shards, self.unflushed_rows_max, limit, of_far);
        if fewer.len() < threads.saturating_mul(PARTS_PER_THREAD) { parts } else { fewer }
    }

    /// Returns true if there may be unflushed rows.
    pub(crate) fn may_have_unflushed_rows(&self) -> bool {
        // A scan from another process has its unflushed rows listed, and no other rows of the table.
        self.unflushed.get().is_some_and(|fresh| !fresh.is_empty())
            || self.rows.fresh.len() + self.rows.own_rows.layer.len() != self.rows.own_rows.layer.hidden_len()
    }

    /// Returns the unflushed rows in a fixed order.
    pub fn unflushed(&self) -> &[(RowId, Arc<RowVersion>)] {
        self.unflushed.get_or_init(|| match &self.unflushed_range {
            Some(keyed) => keyed.rows(&self.rows, usize::MAX),
            None => self.rows.fresh_rows().map(|(id, row)| (id, Arc::clone(row))).collect(),
        })
    }
}
