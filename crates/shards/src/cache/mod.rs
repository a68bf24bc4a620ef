//! Hot columns in memory: each page of a shard's column that was read becomes a block, on which predicates run as it lies.
//!
//! `read.rs` is a scan through the cache, `block.rs` what is kept of a page, `select.rs` which of its rows pass, and `queues.rs` what stays
//! when memory runs short. What the cache lacks is read from the object and kept: nothing is ever only here.

mod block;
mod queues;
mod read;
mod select;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use types::{ColumnId, ShardId};

pub use self::block::ColumnBlock;
use self::queues::Queues;
pub use self::read::{PageColumn, PageRows, Piece, RowGroupPages, take_rows};

/// Blocks of columns, of as many bytes as it was made for. Shared by all scans.
#[derive(Debug)]
pub struct BlockCache {
    blocks: Mutex<Queues<BlockKey, Arc<ColumnBlock>>>,
    hits: AtomicU64,
    misses: AtomicU64,
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

/// How much a cache holds, and how well it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUse {
    pub bytes: u64,
    pub bytes_max: u64,
    pub blocks: u64,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
}

impl BlockCache {
    /// An empty cache for at most `bytes_max` bytes; for none at all, reads go by it.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self { blocks: Mutex::new(Queues::new(bytes_max)), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// Whether it has room for nothing: then nothing is made for it.
    fn is_off(&self) -> bool {
        self.blocks.lock().bytes_max() == 0
    }

    /// What it holds now, and what happened since it was made.
    #[must_use]
    pub fn usage(&self) -> CacheUse {
        let blocks = self.blocks.lock();
        CacheUse {
            bytes: blocks.bytes(),
            bytes_max: blocks.bytes_max(),
            blocks: blocks.len() as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: blocks.evictions(),
        }
    }

    fn get(&self, key: &BlockKey) -> Option<Arc<ColumnBlock>> {
        let block = self.blocks.lock().get(key).map(Arc::clone);
        let counter = if block.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        block
    }

    fn put(&self, key: BlockKey, block: &Arc<ColumnBlock>) {
        let evicted = self.blocks.lock().put(key, Arc::clone(block), block.memory_bytes());
        // Freed without the lock.
        drop(evicted);
    }
}
