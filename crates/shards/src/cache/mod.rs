//! Hot columns in memory: each page of a shard's column that was read becomes a block, on which predicates run as it lies.
//!
//! `read.rs` is a scan through the cache, `block.rs` what is kept of a page, `select.rs` which of its rows pass, `queues.rs` what stays
//! when memory runs short, and `counts.rs` how tables are served. What the cache lacks is read from the object and kept: nothing is ever only here.

mod block;
mod counts;
mod queues;
mod read;
mod select;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::Mutex;
use types::{ColumnId, Oid, ShardId};

pub use self::block::ColumnBlock;
pub use self::counts::CacheUse;
use self::queues::Queues;
pub use self::read::{PageColumn, PageRows, Piece, RowGroupPages, take_rows};

/// Blocks of columns, of as many bytes as it was made for. Shared by all scans.
#[derive(Debug)]
pub struct BlockCache {
    blocks: Mutex<Queues<BlockKey, Arc<ColumnBlock>>>,
}

/// The cache as scans of one table use it.
#[derive(Debug, Clone)]
pub struct TableCache {
    cache: Arc<BlockCache>,
    table: Oid,
}

/// One page of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    pub(crate) shard: ShardId,
    pub(crate) column: ColumnId,
    pub(crate) row_group: u32,
    /// Which [`blocks::BLOCK_ROWS`] rows of the row group.
    pub(crate) number: u32,
}

/// How one of the cache's tiers is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierUse {
    /// `memory`.
    pub tier: &'static str,
    /// What it may hold.
    pub bytes_max: u64,
    /// By table; what no table is known for is of the table 0.
    pub tables: Vec<(Oid, CacheUse)>,
}

impl BlockCache {
    /// An empty cache for at most `bytes_max` bytes; for none at all, reads go by it.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self { blocks: Mutex::new(Queues::new(bytes_max)) }
    }

    /// The cache for scans of `table`.
    #[must_use]
    pub fn of(self: &Arc<Self>, table: Oid) -> TableCache {
        TableCache { cache: Arc::clone(self), table }
    }

    /// How its memory is used.
    #[must_use]
    pub fn usage(&self) -> CacheUse {
        self.blocks.lock().counts().sum()
    }

    /// How each tier is used, by table.
    #[must_use]
    pub fn tiers(&self) -> Vec<TierUse> {
        let blocks = self.blocks.lock();
        vec![TierUse { tier: "memory", bytes_max: blocks.bytes_max(), tables: blocks.counts().by_table() }]
    }
}

impl TableCache {
    /// Whether there is room for nothing: then nothing is made for it.
    fn is_off(&self) -> bool {
        self.cache.blocks.lock().bytes_max() == 0
    }

    fn get(&self, key: &BlockKey) -> Option<Arc<ColumnBlock>> {
        self.cache.blocks.lock().get(key, self.table).map(Arc::clone)
    }

    fn put(&self, key: BlockKey, block: &Arc<ColumnBlock>) {
        let evicted = self.cache.blocks.lock().put(key, self.table, Arc::clone(block), block.memory_bytes());
        // Freed without the lock.
        drop(evicted);
    }
}
