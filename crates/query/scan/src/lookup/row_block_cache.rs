//! Cache of flushed rows that were read one by one: blocks of stored rows, bounded by memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rowstore::Tuple;
use types::ShardId;

/// Number of rows in a block, the unit of reading.
pub(super) const ROW_BLOCK_ROWS: u32 = 1024;
/// Maximum memory of all cached blocks, in bytes.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// LRU cache of blocks of shard rows.
#[derive(Debug, Default)]
pub(crate) struct RowBlockCache {
    inner: Mutex<RowBlockCacheState>,
}

/// State of the cache.
#[derive(Debug, Default)]
struct RowBlockCacheState {
    blocks: HashMap<(ShardId, u32), RowBlock>,
    /// Number of uses so far, as the time of the last use.
    clock: u64,
    bytes: usize,
}

/// Cached block with the time of its last use.
#[derive(Debug)]
struct RowBlock {
    rows: Arc<Vec<Tuple>>,
    last_use: u64,
    bytes: usize,
}

impl RowBlockCache {
    /// Returns a cached block. Its rows may lack columns that were added to the table since; they are read as rows from
    /// before the column.
    pub(super) fn get(&self, shard: ShardId, piece: u32) -> Option<Arc<Vec<Tuple>>> {
        let mut inner = self.inner.lock();
        inner.clock += 1;
        let now = inner.clock;
        let piece = inner.blocks.get_mut(&(shard, piece))?;
        piece.last_use = now;
        Some(Arc::clone(&piece.rows))
    }

    pub(super) fn insert(&self, shard: ShardId, piece: u32, rows: &Arc<Vec<Tuple>>) {
        let bytes = rows.iter().map(|row| row.as_bytes().len() + size_of::<Tuple>()).sum();
        let mut inner = self.inner.lock();
        inner.clock += 1;
        let used = inner.clock;
        let old = inner.blocks.insert((shard, piece), RowBlock { rows: Arc::clone(rows), last_use: used, bytes });
        inner.bytes = inner.bytes + bytes - old.map_or(0, |old| old.bytes);
        if MEMORY_BYTES_MAX < inner.bytes {
            inner.evict();
        }
    }
}

impl RowBlockCacheState {
    /// Evicts an eighth of the cache at once, so that not every insertion searches for the oldest block.
    fn evict(&mut self) {
        let mut by_use: Vec<(u64, (ShardId, u32))> =
            self.blocks.iter().map(|(key, piece)| (piece.last_use, *key)).collect();
        by_use.sort_unstable();
        for (_, key) in by_use {
            if self.bytes <= MEMORY_BYTES_MAX / 8 * 7 {
                return;
            }
            self.bytes -= self.blocks.remove(&key).map_or(0, |piece| piece.bytes);
        }
    }
}
