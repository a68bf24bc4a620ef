//! Warms worker caches with new shards: the workers that own parts of a shard just written by a load or a compaction
//! open it, and cache its hot columns before a query reads it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{StreamExt, stream};
use scan::{PartLocation, column_defs};
use serde::{Deserialize, Serialize};
use shards::{ColumnDef, FETCH_ROWS_MIN, ShardMeta};
use types::{CachePolicy, Oid};

use crate::worker_runtime::Worker;

/// Shards that are opened concurrently.
const CONCURRENT_OPENS: usize = 4;

/// Shards that were added to a table recently.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewShards {
    table: Oid,
    cache: CachePolicy,
    columns: Vec<ColumnDef>,
    shards: Vec<ShardMeta>,
}

/// Counters of cache warming on a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheWarmingStats {
    /// Shards that were opened.
    pub shards: u64,
    /// Blocks that were cached before a query read them.
    pub blocks: u64,
    /// Shards of which something was skipped because too much was waiting.
    pub dropped: u64,
}

/// Live counters of cache warming; the block cache counts the blocks.
#[derive(Debug, Default)]
pub(super) struct CacheWarmingCounters {
    shards: AtomicU64,
    dropped: AtomicU64,
}

impl NewShards {
    /// Returns these shards of a table with what opening and caching needs; column statistics are left out.
    #[must_use]
    pub fn new<'a>(table: &catalog::Table, shards: impl IntoIterator<Item = &'a Arc<ShardMeta>>) -> Self {
        let known = |shard: &Arc<ShardMeta>| ShardMeta { columns: Vec::new(), ..shard.as_ref().clone() };
        let shards = shards.into_iter().map(known).collect();
        Self { table: table.oid, cache: table.cache, columns: column_defs(table), shards }
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// Returns whether there are no shards.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// Splits the shards into lists of at most `most`.
    pub fn split(self, most: usize) -> impl Iterator<Item = Self> {
        let Self { table, cache, columns, shards } = self;
        let lists: Vec<Vec<ShardMeta>> = shards.chunks(most).map(<[ShardMeta]>::to_vec).collect();
        lists.into_iter().map(move |shards| Self { table, cache, columns: columns.clone(), shards })
    }
}

/// Returns the parts of a shard, each of which one worker owns.
pub fn shard_parts(shard: &ShardMeta) -> impl Iterator<Item = PartLocation> {
    let id = shard.id;
    shard.row_groups.iter().enumerate().flat_map(move |(row_group, group)| {
        let rows = usize::try_from(group.rows).expect("a row group's rows fit in memory");
        (0..rows).step_by(FETCH_ROWS_MIN).map(move |row| PartLocation { shard: id, row_group, row })
    })
}

impl Worker {
    /// Opens those new shards of which some part is `is_own`, and schedules their hot columns to be cached when the
    /// worker is idle. Completes when the shards are open.
    pub async fn warm_cache(&self, new: &NewShards, is_own: impl Fn(PartLocation) -> bool + Sync) {
        let is_own = &is_own;
        let columns = &self.hot_columns(new);
        let shards: Vec<Arc<ShardMeta>> = new.shards.iter().cloned().map(Arc::new).collect();
        let read = |shard| self.warm_shard(new, shard, columns, is_own);
        stream::iter(shards).for_each_concurrent(CONCURRENT_OPENS, read).await;
    }

    /// Counts shards that are skipped because the worker is busy.
    pub fn skip_warming(&self, new: &NewShards) {
        self.cache_warming_counters().dropped.fetch_add(new.shards.len() as u64, Ordering::Relaxed);
    }

    /// Returns the counters of cache warming.
    #[must_use]
    pub fn cache_warming_stats(&self) -> CacheWarmingStats {
        let counts = self.cache_warming_counters();
        let (shards, dropped) = (counts.shards.load(Ordering::Relaxed), counts.dropped.load(Ordering::Relaxed));
        CacheWarmingStats { shards, blocks: self.blocks().prefetched().0, dropped }
    }

    /// Returns the columns that queries of the table read repeatedly, or all columns if the table is pinned.
    fn hot_columns(&self, new: &NewShards) -> Vec<ColumnDef> {
        match new.cache {
            CachePolicy::Pin => new.columns.clone(),
            CachePolicy::Never => Vec::new(),
            CachePolicy::Normal => {
                let hot = self.blocks().hot_columns(new.table);
                new.columns.iter().filter(|column| hot.contains(&column.id)).cloned().collect()
            }
        }
    }

    async fn warm_shard(
        &self,
        new: &NewShards,
        shard: Arc<ShardMeta>,
        columns: &[ColumnDef],
        is_own: &(impl Fn(PartLocation) -> bool + Sync),
    ) {
        let own: Vec<PartLocation> = shard_parts(&shard).filter(|piece| is_own(*piece)).collect();
        if own.is_empty() {
            return;
        }
        let counts = self.cache_warming_counters();
        let reader = match self.scans().open_shard(&shard).await {
            Ok(reader) => reader,
            // Compaction may have removed it.
            Err(error) => {
                return tracing::debug!(%error, "could not open a new shard to warm the cache; reads fill the cache");
            }
        };
        counts.shards.fetch_add(1, Ordering::Relaxed);
        if columns.is_empty() {
            return;
        }
        let table = self.blocks().for_table(new.table, new.cache);
        let begin = |piece: &PartLocation| {
            table.prefetch(&reader, piece.row_group, piece.row..piece.row + FETCH_ROWS_MIN, columns)
        };
        let begun: shards::Result<Vec<bool>> = own.iter().map(begin).collect();
        match begun {
            Ok(begun) if begun.iter().all(|begun| *begun) => {}
            Ok(_) => {
                counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::debug!(%error, "could not cache blocks of a new shard; reads fill the cache")
            }
        }
    }
}

impl fmt::Debug for NewShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shards of table {}", self.shards.len(), self.table.0)
    }
}
