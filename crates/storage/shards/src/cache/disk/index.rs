//! Index of the blocks on disk, and the order in which segments are reclaimed: oldest first. Does no I/O and no
//! locking.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use types::Oid;

use super::super::BlockKey;
use super::super::eviction::Retention;
use super::super::retention::{CachedShards, RetentionPolicy};
use super::super::tier_stats::TableStats;

/// Location of a block's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordLocation {
    /// Number of the segment file.
    pub(super) segment: u64,
    /// Offset in the file.
    pub(super) offset: u64,
    /// Length of the record.
    pub(super) bytes: u64,
}

/// A record found by its head: key, table whose scan brought the block, and location.
pub(super) type ScannedRecord = (BlockKey, Oid, RecordLocation);

/// Index entry of a block.
#[derive(Debug)]
struct Entry {
    location: RecordLocation,
    table: Oid,
    /// True if it was read since it was written.
    was_read: bool,
}

/// Segment file, and the keys of the blocks written to it.
#[derive(Debug)]
struct Segment {
    number: u64,
    bytes: u64,
    block_keys: Vec<BlockKey>,
}

/// Segment that is to be deleted.
#[derive(Debug)]
pub(super) struct ReclaimedSegment {
    pub(super) segment: u64,
    /// Its blocks that are worth writing again.
    pub(super) survivors: Vec<(BlockKey, RecordLocation)>,
}

/// Index of all blocks on disk.
#[derive(Debug)]
pub(super) struct DiskIndex {
    blocks: HashMap<BlockKey, Entry>,
    /// Segments by ascending number; the first is reclaimed next.
    segments: VecDeque<Segment>,
    /// Size of all segments.
    file_bytes: u64,
    table_stats: TableStats,
    /// Shards that may have blocks on disk, and the retention policy.
    shards: CachedShards,
}

impl DiskIndex {
    pub(super) fn new() -> Self {
        Self {
            blocks: HashMap::new(),
            segments: VecDeque::new(),
            file_bytes: 0,
            table_stats: TableStats::new(),
            shards: CachedShards::default(),
        }
    }

    /// Returns the location of a block and counts a hit or miss for `table`.
    pub(super) fn find(&mut self, key: &BlockKey, table: Oid) -> Option<RecordLocation> {
        let counts = self.table_stats.for_table(table);
        let Some(entry) = self.blocks.get_mut(key) else {
            counts.misses += 1;
            return None;
        };
        counts.hits += 1;
        entry.was_read = true;
        Some(entry.location)
    }

    /// Corrects the statistics after a failed read and removes the entry, unless the block has moved since.
    pub(super) fn report_failed_read(&mut self, key: &BlockKey, location: RecordLocation, table: Oid) {
        let counts = self.table_stats.for_table(table);
        // The table may have been merged with others since.
        counts.hits = counts.hits.saturating_sub(1);
        counts.misses += 1;
        if self.blocks.get(key).is_some_and(|entry| entry.location == location) {
            self.remove(key);
        }
    }

    pub(super) fn contains(&self, key: &BlockKey) -> bool {
        self.blocks.contains_key(key)
    }

    /// Adds a segment of an earlier run, older than all known ones; skips blocks that are unwanted or present in newer
    /// segments.
    pub(super) fn add_recovered_segment(&mut self, number: u64, bytes: u64, blocks: Vec<ScannedRecord>) {
        self.segments.push_front(Segment { number, bytes, block_keys: Vec::new() });
        self.file_bytes += bytes;
        for (key, table, location) in blocks {
            if self.shards.retains(key.shard, table) && !self.contains(&key) {
                self.insert(key, table, location);
                self.segments.front_mut().expect("a segment was pushed above").block_keys.push(key);
            }
        }
    }

    /// Adds the segment that is filled from now on.
    pub(super) fn add_segment(&mut self, number: u64) {
        self.segments.push_back(Segment { number, bytes: 0, block_keys: Vec::new() });
    }

    /// Adds a record appended to the newest segment.
    pub(super) fn add_record(&mut self, key: BlockKey, table: Oid, location: RecordLocation) {
        let newest = self.segments.back_mut().expect("add_segment is called before the first record");
        newest.bytes += location.bytes;
        newest.block_keys.push(key);
        self.file_bytes += location.bytes;
        self.remove(&key);
        self.insert(key, table, location);
    }

    /// Removes the oldest segment from the index. Entries of its blocks that were read from disk or that `is_worth`
    /// accepts remain, up to half of the segment's size, and are returned to be written again.
    pub(super) fn reclaim(&mut self, is_hot: impl Fn(&BlockKey) -> bool) -> Option<ReclaimedSegment> {
        let Segment { number, bytes, block_keys: keys } = self.segments.pop_front()?;
        self.file_bytes -= bytes;
        let mut room = bytes / 2;
        let mut kept = Vec::new();
        for key in keys {
            let Some(entry) = self.blocks.get(&key).filter(|entry| entry.location.segment == number) else { continue };
            let (location, table) = (entry.location, entry.table);
            if location.bytes <= room && (entry.was_read || is_hot(&key)) {
                room -= location.bytes;
                kept.push((key, location));
            } else {
                self.remove(&key);
                self.table_stats.for_table(table).evictions += 1;
            }
        }
        Some(ReclaimedSegment { segment: number, survivors: kept })
    }

    /// Removes a block that could not be written again.
    pub(super) fn remove_unwritten(&mut self, key: &BlockKey, location: RecordLocation) {
        if let Some(entry) = self.blocks.get(key).filter(|entry| entry.location == location) {
            self.table_stats.for_table(entry.table).evictions += 1;
            self.remove(key);
        }
    }

    /// Removes blocks that no table references or wants, and rejects such blocks of segments that are added later.
    pub(super) fn apply_retention(&mut self, policy: &Arc<RetentionPolicy>) {
        if !self.shards.set_policy(policy) {
            return;
        }
        let gone: Vec<BlockKey> = (self.blocks.iter())
            .filter(|(key, entry)| policy.decide(key.shard, entry.table) == Retention::Remove)
            .map(|(key, _)| *key)
            .collect();
        gone.iter().for_each(|key| self.remove(key));
    }

    /// Returns the size of all segments.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(super) fn counts(&self) -> &TableStats {
        &self.table_stats
    }

    fn insert(&mut self, key: BlockKey, table: Oid, location: RecordLocation) {
        self.table_stats.for_table(table).add_block(location.bytes);
        self.shards.add(key.shard);
        self.blocks.insert(key, Entry { location, table, was_read: false });
    }

    fn remove(&mut self, key: &BlockKey) {
        if let Some(entry) = self.blocks.remove(key) {
            self.table_stats.for_table(entry.table).remove_block(entry.location.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use types::{CachePolicy, ColumnId, ShardId};
    use uuid::Uuid;

    use super::*;

    const TABLE: Oid = Oid(7);

    fn key(number: u32) -> BlockKey {
        BlockKey { shard: ShardId(Uuid::from_u128(1)), column: ColumnId(1), row_group: 0, page: number }
    }

    fn location(segment: u64, number: u32) -> RecordLocation {
        RecordLocation { segment, offset: u64::from(number) * 10, bytes: 10 }
    }

    fn filled(segments: u64) -> DiskIndex {
        let mut index = DiskIndex::new();
        for segment in 0..segments {
            index.add_segment(segment);
            (0..10).for_each(|number| {
                index.add_record(key(segment as u32 * 10 + number), TABLE, location(segment, number))
            });
        }
        index
    }

    #[test]
    fn what_was_asked_for_or_is_worth_it_outlives_its_file_as_far_as_half_of_it_goes() {
        let mut index = filled(2);
        assert_eq!(index.find(&key(3), TABLE), Some(location(0, 3)));
        let gone = index.reclaim(|key| 6 <= key.page).unwrap();
        let kept: Vec<u32> = gone.survivors.iter().map(|(key, _)| key.page).collect();
        assert_eq!((gone.segment, kept), (0, vec![3, 6, 7, 8, 9]));
        let counted = index.counts().sum();
        assert_eq!((counted.blocks, counted.bytes, counted.hits, counted.evictions), (15, 150, 1, 5));
        assert_eq!(index.file_bytes(), 100);
        // One block is written again, another is not.
        index.add_record(key(3), TABLE, location(1, 10));
        index.remove_unwritten(&key(6), location(0, 6));
        assert_eq!(index.find(&key(3), TABLE), Some(location(1, 10)));
        assert_eq!((index.find(&key(6), TABLE), index.counts().sum().evictions), (None, 6));
        // A failed read at an outdated location does not remove the entry.
        index.report_failed_read(&key(3), location(0, 3), TABLE);
        assert_eq!(index.find(&key(3), TABLE), Some(location(1, 10)));
        index.report_failed_read(&key(3), location(1, 10), TABLE);
        assert_eq!(index.find(&key(3), TABLE), None);
    }

    #[test]
    fn of_files_that_are_found_the_newest_counts_and_nothing_unwanted() {
        let mut index = DiskIndex::new();
        let other = BlockKey { shard: ShardId(Uuid::from_u128(2)), ..key(1) };
        let policies = [(Oid(9), CachePolicy::Never)].into();
        let policy = RetentionPolicy { live_shards: [key(0).shard].into(), policies, ..RetentionPolicy::default() };
        index.apply_retention(&Arc::new(policy));
        index.add_recovered_segment(
            4,
            30,
            vec![(key(1), TABLE, location(4, 0)), (other, TABLE, location(4, 1)), (key(2), Oid(9), location(4, 2))],
        );
        index.add_recovered_segment(3, 20, vec![(key(1), TABLE, location(3, 0)), (key(5), TABLE, location(3, 1))]);
        assert_eq!(index.find(&key(1), TABLE), Some(location(4, 0)));
        assert_eq!(index.find(&key(5), TABLE), Some(location(3, 1)));
        assert_eq!((index.find(&other, TABLE), index.find(&key(2), TABLE)), (None, None));
        assert_eq!(index.file_bytes(), 50);
        let gone = index.reclaim(|_| false).unwrap();
        assert_eq!((gone.segment, gone.survivors.len()), (3, 1), "what was asked for is kept");
    }
}
