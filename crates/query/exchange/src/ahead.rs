//! Shards that a load, or a shard's writing anew, has just made, as the workers that own parts of them are told: they open them, and have of what is hot in the
//! table what is theirs of it in their caches before a query asks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{StreamExt, stream};
use scan::{PartKey, column_defs};
use serde::{Deserialize, Serialize};
use shards::{ColumnDef, SEGMENT_ROWS, ShardMeta};
use types::{CachePolicy, Oid};

use crate::worker::Worker;

/// Shards that are opened at a time.
const OPENED_AT_ONCE: usize = 4;

/// Shards that a table has since lately.
#[derive(Clone, Serialize, Deserialize)]
pub struct NewShards {
    table: Oid,
    cache: CachePolicy,
    columns: Vec<ColumnDef>,
    shards: Vec<ShardMeta>,
}

/// What a worker was told of new shards, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AheadUse {
    /// Shards that it has opened.
    pub shards: u64,
    /// Blocks that it has read before anybody asked.
    pub blocks: u64,
    /// Shards of which it left something out, because too much waited already.
    pub dropped: u64,
}

/// The counts of that, but for the blocks.
#[derive(Debug, Default)]
pub(super) struct AheadCounts {
    shards: AtomicU64,
    dropped: AtomicU64,
}

impl NewShards {
    /// Of a table, as far as opening them and reading ahead needs to know them: without what is known of their columns.
    #[must_use]
    pub fn of<'a>(table: &catalog::Table, shards: impl IntoIterator<Item = &'a Arc<ShardMeta>>) -> Self {
        let known = |shard: &Arc<ShardMeta>| ShardMeta { columns: Vec::new(), ..shard.as_ref().clone() };
        let shards = shards.into_iter().map(known).collect();
        Self { table: table.oid, cache: table.cache, columns: column_defs(table), shards }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// The same in lists of at most so many.
    pub fn in_lists(self, most: usize) -> impl Iterator<Item = Self> {
        let Self { table, cache, columns, shards } = self;
        let lists: Vec<Vec<ShardMeta>> = shards.chunks(most).map(<[ShardMeta]>::to_vec).collect();
        lists.into_iter().map(move |shards| Self { table, cache, columns: columns.clone(), shards })
    }
}

/// The pieces of a shard, each of which one worker owns.
pub fn pieces(shard: &ShardMeta) -> impl Iterator<Item = PartKey> {
    let id = shard.id;
    shard.row_groups.iter().enumerate().flat_map(move |(row_group, group)| {
        let rows = usize::try_from(group.rows).expect("a row group's rows fit in memory");
        (0..rows).step_by(SEGMENT_ROWS).map(move |row| PartKey { shard: id, row_group, row })
    })
}

impl Worker {
    /// Opens those of new shards of which some piece is its own, and has what is hot of these pieces read when nobody reads. Completes when they are opened.
    pub async fn read_ahead(&self, new: &NewShards, is_own: impl Fn(PartKey) -> bool + Sync) {
        let is_own = &is_own;
        let columns = &self.hot_columns(new);
        let shards: Vec<Arc<ShardMeta>> = new.shards.iter().cloned().map(Arc::new).collect();
        let read = |shard| self.read_shard_ahead(new, shard, columns, is_own);
        stream::iter(shards).for_each_concurrent(OPENED_AT_ONCE, read).await;
    }

    /// Counts shards that it was told of and does nothing about: it has enough to do.
    pub fn drop_ahead(&self, new: &NewShards) {
        self.ahead_counts().dropped.fetch_add(new.shards.len() as u64, Ordering::Relaxed);
    }

    /// What it was told of new shards, and what came of it.
    #[must_use]
    pub fn ahead(&self) -> AheadUse {
        let counts = self.ahead_counts();
        let (shards, dropped) = (counts.shards.load(Ordering::Relaxed), counts.dropped.load(Ordering::Relaxed));
        AheadUse { shards, blocks: self.blocks().read_ahead().0, dropped }
    }

    /// The columns that queries of the table ask for again and again, or all where it is pinned.
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

    async fn read_shard_ahead(
        &self,
        new: &NewShards,
        shard: Arc<ShardMeta>,
        columns: &[ColumnDef],
        is_own: &(impl Fn(PartKey) -> bool + Sync),
    ) {
        let own: Vec<PartKey> = pieces(&shard).filter(|piece| is_own(*piece)).collect();
        if own.is_empty() {
            return;
        }
        let counts = self.ahead_counts();
        let reader = match self.scans().open(&shard).await {
            Ok(reader) => reader,
            // It may have been written anew since.
            Err(error) => return tracing::debug!(%error, "a new shard cannot be opened ahead"),
        };
        counts.shards.fetch_add(1, Ordering::Relaxed);
        if columns.is_empty() {
            return;
        }
        let table = self.blocks().of(new.table, new.cache);
        let begin =
            |piece: &PartKey| table.read_ahead(&reader, piece.row_group, piece.row..piece.row + SEGMENT_ROWS, columns);
        let begun: shards::Result<Vec<bool>> = own.iter().map(begin).collect();
        match begun {
            Ok(begun) if begun.iter().all(|begun| *begun) => {}
            Ok(_) => {
                counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => tracing::debug!(%error, "a new shard cannot be read ahead"),
        }
    }
}

impl fmt::Debug for NewShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shards of table {}", self.shards.len(), self.table.0)
    }
}
