//! Cache warm-up: transfers hot blocks to the cache of the worker that takes over parts of shards.
//!
//! Blocks are sent as disk records (`disk/block_record.rs`) together with their number of rows, and are validated completely
//! on arrival.

use std::sync::Arc;

use bytes::Bytes;
use types::{CachePolicy, ColumnId, Oid, ShardId};

use super::block::ColumnBlock;
use super::disk::{RecordHead, decode, encode};
use super::{BlockCache, BlockKey};

/// Location of a block's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockLocation {
    pub shard: ShardId,
    pub column: ColumnId,
    pub row_group: u32,
    /// First row of the block in the row group.
    pub first_row: usize,
}

/// Frequently used block, about to be sent to another cache.
#[derive(Debug, Clone)]
pub struct HotBlock {
    key: BlockKey,
    table: Oid,
    block: Arc<ColumnBlock>,
}

impl HotBlock {
    /// Serializes the block; returns its number of rows and its record, or `None` if the block is not stored.
    #[must_use]
    pub fn to_record(&self) -> Option<(usize, Bytes)> {
        let mut record = Vec::new();
        encode(self.key, self.table, &self.block, &mut record)?;
        Some((self.block.rows(), record.into()))
    }
}

impl BlockCache {
    /// Returns the hot blocks in memory that `is_wanted` accepts, hottest first, up to `bytes_max` bytes. Hot blocks
    /// are pinned or were read more than once.
    #[must_use]
    pub fn hot_blocks(&self, is_wanted: impl Fn(BlockLocation) -> bool, bytes_max: u64) -> Vec<HotBlock> {
        let mut hot = self.memory.lock().blocks.hot_entries();
        hot.retain(|(key, ..)| is_wanted(location_of(key)));
        let mut bytes = 0_u64;
        let within = |(.., block): &(BlockKey, Oid, Arc<ColumnBlock>)| {
            bytes = bytes.saturating_add(block.memory_bytes());
            bytes <= bytes_max
        };
        let kept = hot.into_iter().take_while(within);
        kept.map(|(key, table, block)| HotBlock { key, table, block }).collect()
    }

    /// Inserts a block sent by another cache. Returns false if its record is invalid or there is no room.
    pub fn insert_record(self: &Arc<Self>, rows: usize, record: &Bytes) -> bool {
        let Some(head) = RecordHead::read(record) else { return false };
        let Some(block) = decode(record, &head.key, rows) else { return false };
        let cache = self.for_table(head.table, CachePolicy::Normal);
        cache.register_shard(head.key.shard);
        cache.insert_if_room(head.key, &Arc::new(block))
    }
}

/// Returns the location of a block.
fn location_of(key: &BlockKey) -> BlockLocation {
    let row = key.page as usize * blocks::BLOCK_ROWS;
    BlockLocation { shard: key.shard, column: key.column, row_group: key.row_group, first_row: row }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use uuid::Uuid;

    use super::*;

    fn key(number: u32) -> BlockKey {
        BlockKey { shard: ShardId(Uuid::from_u128(9)), column: ColumnId(1), row_group: 0, page: number }
    }

    /// Returns a cache of `count` blocks of numbers; those with even numbers are hot.
    fn cache(count: u32) -> Arc<BlockCache> {
        let cache = Arc::new(BlockCache::new(1 << 24));
        let table = cache.for_table(Oid(5), CachePolicy::Normal);
        for number in 0..count {
            let values: ArrayRef =
                Arc::new(Int64Array::from_iter_values((0..1_000).map(|i| i * i64::from(number + 3))));
            table.insert(key(number), &Arc::new(ColumnBlock::from_array(&values).expect("numbers are packed")));
            if number % 2 == 0 {
                (0..=number).for_each(|_| assert!(table.get(&key(number)).is_some()));
            }
        }
        cache
    }

    #[test]
    fn what_was_asked_for_arrives_whole_and_the_hottest_goes_first() {
        let (from, to) = (cache(8), Arc::new(BlockCache::new(1 << 24)));
        let hot = from.hot_blocks(|place| place.first_row != 4 * blocks::BLOCK_ROWS, u64::MAX);
        let numbers: Vec<u32> = hot.iter().map(|block| block.key.page).collect();
        assert_eq!(numbers.len(), 3, "{numbers:?}");
        assert!(!numbers.contains(&0) || numbers.last() == Some(&0), "{numbers:?}");
        for block in &hot {
            let (rows, record) = block.to_record().expect("numbers have a form");
            assert_eq!(rows, 1_000);
            assert!(!to.insert_record(rows + 1, &record), "rows are those that were said");
            let mut damaged = record.to_vec();
            damaged[100] ^= 1;
            assert!(!to.insert_record(rows, &damaged.into()), "damage is seen");
            assert!(to.insert_record(rows, &record));
        }
        let table = to.for_table(Oid(5), CachePolicy::Normal);
        for number in [2, 6] {
            let block = table.get(&key(number)).expect("it has arrived");
            let ColumnBlock::Numbers(block) = &*block else { panic!("numbers stay numbers") };
            assert_eq!(block.header().rows, 1_000);
        }
        assert!(table.get(&key(1)).is_none());
    }

    #[test]
    fn no_more_goes_than_there_is_room_for() {
        let from = cache(8);
        let all = from.hot_blocks(|_| true, u64::MAX);
        let one = all[0].block.memory_bytes();
        assert_eq!(from.hot_blocks(|_| true, one).len(), 1);
        assert!(from.hot_blocks(|_| true, 0).is_empty());
        let none = Arc::new(BlockCache::new(0));
        let (rows, record) = all[0].to_record().expect("numbers have a form");
        assert!(!none.insert_record(rows, &record));
        assert!(!none.insert_record(rows, &Bytes::from_static(b"nothing")));
    }
}
