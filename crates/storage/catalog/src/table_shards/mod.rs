//! Shards of one table, with their combined statistics and delete bitmaps.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;
use roaring::RoaringBitmap;
use shards::{ColumnDef, Predicate, ShardMeta};
use types::{ColumnId, ShardId};

use self::prune_cache::PruneCache;
use crate::column_summary::MergedStatistics;
use crate::{Column, ColumnSummary, DeleteBitmap, Sample};

mod prune_cache;
mod shard_list;
mod shard_pack;

pub use prune_cache::PrunedShards;
pub use shard_list::{ShardList, ShardSize};

#[cfg(test)]
mod tests;

/// Shards of a table. Cloning costs a few pointers.
#[derive(Debug, Clone)]
pub struct TableShards {
    /// The shards in the order in which they were added.
    pub shards: ShardList,
    /// Number of rows in all shards, including deleted ones.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
    pub sample: Option<Arc<Sample>>,
    /// Delete bitmaps of the shards: rows that were deleted or replaced by newer versions.
    pub deleted: OrdMap<ShardId, Arc<DeleteBitmap>>,
    /// Number of deleted rows in all shards.
    pub deleted_rows: u64,
    statistics: Arc<LazyStatistics>,
    /// Cache of recent pruning results for these shards.
    prune_cache: Arc<PruneCache>,
}

/// Statistics computed on first use, incrementally from those of an earlier state if possible.
#[derive(Debug, Default)]
struct LazyStatistics {
    merged: OnceLock<Arc<MergedStatistics>>,
    /// Statistics of a prefix of the shards, with its length.
    prefix_statistics: Option<(Arc<MergedStatistics>, usize)>,
}

impl TableShards {
    /// Returns the statistics of a column over the shards that contain it; `None` if none does.
    #[must_use]
    pub fn column(&self, column: ColumnId) -> Option<&ColumnSummary> {
        self.statistics().column(column)
    }

    /// Returns the statistics of a column, including rows of shards older than it.
    #[must_use]
    pub fn summary(&self, column: &Column) -> ColumnSummary {
        let known = self.column(column.id).cloned().unwrap_or_default();
        let absent = self.rows - known.rows;
        known.with_missing_rows(absent, column.missing.is_some())
    }

    /// Returns the estimated distinct values of a column in the shards that contain it.
    #[must_use]
    pub fn distinct(&self, column: ColumnId) -> Option<u64> {
        self.column(column).map(|summary| summary.distinct)
    }

    /// Returns whether the shards prove that no value of the column occurs twice and none is NULL. An empty table
    /// proves it too.
    #[must_use]
    pub fn is_unique(&self, column: ColumnId) -> bool {
        self.rows == 0 || self.column(column).is_some_and(|summary| summary.unique)
    }

    /// Returns the number of rows that are not deleted.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        self.rows - self.deleted_rows
    }

    /// Returns a shard with its position.
    #[must_use]
    pub fn find(&self, id: ShardId) -> Option<(usize, Arc<ShardMeta>)> {
        self.shards.find(id)
    }

    /// Returns the shards that may contain rows which pass all predicates, by [`shards::prune::may_match`], with their
    /// positions. `columns` are the table's. Results are cached as long as the shards are the same; deletions do not
    /// affect them.
    #[must_use]
    pub fn prune(&self, predicates: &[Predicate], columns: &[ColumnDef]) -> PrunedShards {
        self.prune_cache.get(&self.shards, predicates, columns)
    }

    /// Returns up to `most` shards that were added since `before`, the newest first. If as many were removed since, the
    /// result may include some that `before` contains.
    #[must_use]
    pub fn added_since(&self, before: &Self, most: usize) -> Vec<Arc<ShardMeta>> {
        if self.shards.newest() == before.shards.newest() {
            return Vec::new();
        }
        let newest_first = |of: &Self| (0..of.shards.len()).rev().take(most);
        let known: HashSet<ShardId> = newest_first(before).filter_map(|number| before.shards.id(number)).collect();
        let is_new = |number: &usize| self.shards.id(*number).is_some_and(|shard| !known.contains(&shard));
        let added = newest_first(self).take_while(is_new);
        added.filter_map(|number| self.shards.get(number)).collect()
    }

    /// Returns whether a row of a shard is deleted.
    #[must_use]
    pub fn is_deleted(&self, shard: ShardId, ordinal: u32) -> bool {
        self.deleted.get(&shard).is_some_and(|deleted| deleted.positions.contains(ordinal))
    }

    /// Marks rows of a shard as deleted.
    pub(crate) fn mark_deleted(&mut self, shard: ShardId, rows: &RoaringBitmap) {
        let deleted = Arc::make_mut(self.deleted.entry(shard).or_default());
        let before = deleted.positions.len();
        deleted.add(rows);
        self.deleted_rows += deleted.positions.len() - before;
    }

    /// Returns the table without the shards; the statistics of the remaining ones are recomputed on first use.
    pub(crate) fn without_shards(&self, removed: &[ShardId]) -> Self {
        let mut next = Self { statistics: Arc::default(), prune_cache: Arc::default(), ..self.clone() };
        for gone in next.shards.remove(removed) {
            next.rows -= gone.rows;
            next.bytes -= gone.bytes;
            if let Some(deleted) = next.deleted.remove(&gone.id) {
                next.deleted_rows -= deleted.positions.len();
            }
        }
        next
    }

    /// Returns only these shards, in the table's order.
    pub(crate) fn only_shards(&self, selected: &[ShardId]) -> Self {
        let mut numbers: Vec<usize> = selected.iter().filter_map(|shard| self.shards.position(*shard)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut only = Self { shards: self.shards.only_at(&numbers), sample: self.sample.clone(), ..Self::default() };
        for shard in only.shards.sizes() {
            only.rows += shard.rows;
            only.bytes += shard.bytes;
            if let Some(deleted) = self.deleted.get(&shard.id) {
                only.deleted_rows += deleted.positions.len();
                only.deleted.insert(shard.id, Arc::clone(deleted));
            }
        }
        only
    }

    pub(crate) fn append(&self, shards: &[Arc<ShardMeta>], sample: Option<&Arc<Sample>>) -> Self {
        let mut next = self.clone();
        next.shards.append(shards);
        next.rows += shards.iter().map(|shard| shard.rows).sum::<u64>();
        next.bytes += shards.iter().map(|shard| shard.bytes).sum::<u64>();
        if let Some(sample) = sample {
            next.sample = Some(Arc::clone(sample));
        }
        if !shards.is_empty() {
            let made = self.statistics.merged.get().map(|merged| (Arc::clone(merged), self.shards.len()));
            let start = made.or_else(|| self.statistics.prefix_statistics.clone());
            // The packed shards have statistics of their own, which replace the prefix.
            let start = start.filter(|_| self.shards.packed_len() == next.shards.packed_len());
            next.statistics = Arc::new(LazyStatistics { merged: OnceLock::new(), prefix_statistics: start });
            next.prune_cache = Arc::default();
        }
        next
    }

    fn statistics(&self) -> &MergedStatistics {
        self.statistics.merged.get_or_init(|| {
            let (mut merged, done) = match &self.statistics.prefix_statistics {
                Some((merged, done)) => (MergedStatistics::clone(merged), *done),
                None => (self.shards.packed_statistics().clone(), self.shards.packed_len()),
            };
            self.shards.unpacked_from(done).for_each(|shard| merged.add(shard));
            merged.finish();
            Arc::new(merged)
        })
    }
}

impl Default for TableShards {
    fn default() -> Self {
        Self {
            shards: ShardList::default(),
            rows: 0,
            bytes: 0,
            sample: None,
            deleted: OrdMap::new(),
            deleted_rows: 0,
            statistics: Arc::default(),
            prune_cache: Arc::default(),
        }
    }
}

/// Equal if they hold the same rows in the same order, and the same sample.
impl PartialEq for TableShards {
    fn eq(&self, other: &Self) -> bool {
        self.shards == other.shards && self.sample == other.sample && self.deleted == other.deleted
    }
}
