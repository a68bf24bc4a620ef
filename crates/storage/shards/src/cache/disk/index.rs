//! Index of the blocks on disk, and the order in which segments are reclaimed: oldest first. Does no I/O and no
//! locking.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use types::Oid;

use super::super::BlockKey;
use super::super::counts::Counts;
use super::super::queues::Fate;
use super::super::wishes::{CacheWishes, HeldShards};

/// Location of a block's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Number of the segment file.
    pub(super) segment: u64,
    /// Offset in the file.
    pub(super) at: u64,
    /// Length of the record.
    pub(super) bytes: u64,
}

/// A record found by its head: key, table whose scan brought the block, and location.
pub(super) type Located = (BlockKey, Oid, Place);

/// Index entry of a block.
#[derive(Debug)]
struct Entry {
    place: Place,
    table: Oid,
    /// True if it was read since it was written.
    is_used: bool,
}

/// Segment file, and the keys of the blocks written to it.
#[derive(Debug)]
struct Segment {
    number: u64,
    bytes: u64,
    keys: Vec<BlockKey>,
}

/// Segment that is to be deleted.
#[derive(Debug)]
pub(super) struct Reclaimed {
    pub(super) segment: u64,
    /// Its blocks that are worth writing again.
    pub(super) kept: Vec<(BlockKey, Place)>,
}

/// Index of all blocks on disk.
#[derive(Debug)]
pub(super) struct Index {
    blocks: HashMap<BlockKey, Entry>,
    /// Segments by ascending number; the first is reclaimed next.
    segments: VecDeque<Segment>,
    /// Size of all segments.
    file_bytes: u64,
    counts: Counts,
    /// Shards that may have blocks on disk, and the retention policy.
    shards: HeldShards,
}

impl Index {
    pub(super) fn new() -> Self {
        Self {
            blocks: HashMap::new(),
            segments: VecDeque::new(),
            file_bytes: 0,
            counts: Counts::new(),
            shards: HeldShards::default(),
        }
    }

    /// Returns the location of a block and counts a hit or miss for `table`.
    pub(super) fn find(&mut self, key: &BlockKey, table: Oid) -> Option<Place> {
        let counts = self.counts.of(table);
        let Some(entry) = self.blocks.get_mut(key) else {
            counts.misses += 1;
            return None;
        };
        counts.hits += 1;
        entry.is_used = true;
        Some(entry.place)
    }

    /// Corrects the statistics after a failed read and removes the entry, unless the block has moved since.
    pub(super) fn was_wrong(&mut self, key: &BlockKey, place: Place, table: Oid) {
        let counts = self.counts.of(table);
        // The table may have been merged with others since.
        counts.hits = counts.hits.saturating_sub(1);
        counts.misses += 1;
        if self.blocks.get(key).is_some_and(|entry| entry.place == place) {
            self.forget(key);
        }
    }

    pub(super) fn contains(&self, key: &BlockKey) -> bool {
        self.blocks.contains_key(key)
    }

    /// Adds a segment of an earlier run, older than all known ones; skips blocks that are unwanted or present in newer
    /// segments.
    pub(super) fn add_found(&mut self, number: u64, bytes: u64, blocks: Vec<Located>) {
        self.segments.push_front(Segment { number, bytes, keys: Vec::new() });
        self.file_bytes += bytes;
        for (key, table, place) in blocks {
            if self.shards.wants(key.shard, table) && !self.contains(&key) {
                self.insert(key, table, place);
                self.segments.front_mut().expect("a segment was pushed above").keys.push(key);
            }
        }
    }

    /// Adds the segment that is filled from now on.
    pub(super) fn add_segment(&mut self, number: u64) {
        self.segments.push_back(Segment { number, bytes: 0, keys: Vec::new() });
    }

    /// Adds a record appended to the newest segment.
    pub(super) fn add(&mut self, key: BlockKey, table: Oid, place: Place) {
        let newest = self.segments.back_mut().expect("add_segment is called before the first record");
        newest.bytes += place.bytes;
        newest.keys.push(key);
        self.file_bytes += place.bytes;
        self.forget(&key);
        self.insert(key, table, place);
    }

    /// Removes the oldest segment from the index. Entries of its blocks that were read from disk or that `is_worth`
    /// accepts remain, up to half of the segment's size, and are returned to be written again.
    pub(super) fn reclaim(&mut self, is_worth: impl Fn(&BlockKey) -> bool) -> Option<Reclaimed> {
        let Segment { number, bytes, keys } = self.segments.pop_front()?;
        self.file_bytes -= bytes;
        let mut room = bytes / 2;
        let mut kept = Vec::new();
        for key in keys {
            let Some(entry) = self.blocks.get(&key).filter(|entry| entry.place.segment == number) else { continue };
            let (place, table) = (entry.place, entry.table);
            if place.bytes <= room && (entry.is_used || is_worth(&key)) {
                room -= place.bytes;
                kept.push((key, place));
            } else {
                self.forget(&key);
                self.counts.of(table).evictions += 1;
            }
        }
        Some(Reclaimed { segment: number, kept })
    }

    /// Removes a block that could not be written again.
    pub(super) fn lost(&mut self, key: &BlockKey, place: Place) {
        if let Some(entry) = self.blocks.get(key).filter(|entry| entry.place == place) {
            self.counts.of(entry.table).evictions += 1;
            self.forget(key);
        }
    }

    /// Removes blocks that no table references or wants, and rejects such blocks of segments that are added later.
    pub(super) fn keep(&mut self, wishes: &Arc<CacheWishes>) {
        if !self.shards.note(wishes) {
            return;
        }
        let gone: Vec<BlockKey> = (self.blocks.iter())
            .filter(|(key, entry)| wishes.fate(key.shard, entry.table) == Fate::Gone)
            .map(|(key, _)| *key)
            .collect();
        gone.iter().for_each(|key| self.forget(key));
    }

    /// Returns the size of all segments.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    fn insert(&mut self, key: BlockKey, table: Oid, place: Place) {
        self.counts.of(table).take(place.bytes);
        self.shards.add(key.shard);
        self.blocks.insert(key, Entry { place, table, is_used: false });
    }

    fn forget(&mut self, key: &BlockKey) {
        if let Some(entry) = self.blocks.remove(key) {
            self.counts.of(entry.table).give(entry.place.bytes);
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
        BlockKey { shard: ShardId(Uuid::from_u128(1)), column: ColumnId(1), row_group: 0, number }
    }

    fn place(segment: u64, number: u32) -> Place {
        Place { segment, at: u64::from(number) * 10, bytes: 10 }
    }

    fn filled(segments: u64) -> Index {
        let mut index = Index::new();
        for segment in 0..segments {
            index.add_segment(segment);
            (0..10).for_each(|number| index.add(key(segment as u32 * 10 + number), TABLE, place(segment, number)));
        }
        index
    }

    #[test]
    fn what_was_asked_for_or_is_worth_it_outlives_its_file_as_far_as_half_of_it_goes() {
        let mut index = filled(2);
        assert_eq!(index.find(&key(3), TABLE), Some(place(0, 3)));
        let gone = index.reclaim(|key| 6 <= key.number).unwrap();
        let kept: Vec<u32> = gone.kept.iter().map(|(key, _)| key.number).collect();
        assert_eq!((gone.segment, kept), (0, vec![3, 6, 7, 8, 9]));
        let counted = index.counts().sum();
        assert_eq!((counted.blocks, counted.bytes, counted.hits, counted.evictions), (15, 150, 1, 5));
        assert_eq!(index.file_bytes(), 100);
        // One block is written again, another is not.
        index.add(key(3), TABLE, place(1, 10));
        index.lost(&key(6), place(0, 6));
        assert_eq!(index.find(&key(3), TABLE), Some(place(1, 10)));
        assert_eq!((index.find(&key(6), TABLE), index.counts().sum().evictions), (None, 6));
        // A failed read at an outdated location does not remove the entry.
        index.was_wrong(&key(3), place(0, 3), TABLE);
        assert_eq!(index.find(&key(3), TABLE), Some(place(1, 10)));
        index.was_wrong(&key(3), place(1, 10), TABLE);
        assert_eq!(index.find(&key(3), TABLE), None);
    }

    #[test]
    fn of_files_that_are_found_the_newest_counts_and_nothing_unwanted() {
        let mut index = Index::new();
        let other = BlockKey { shard: ShardId(Uuid::from_u128(2)), ..key(1) };
        let policies = [(Oid(9), CachePolicy::Never)].into();
        let wishes = CacheWishes { shards: [key(0).shard].into(), policies, ..CacheWishes::default() };
        index.keep(&Arc::new(wishes));
        index.add_found(
            4,
            30,
            vec![(key(1), TABLE, place(4, 0)), (other, TABLE, place(4, 1)), (key(2), Oid(9), place(4, 2))],
        );
        index.add_found(3, 20, vec![(key(1), TABLE, place(3, 0)), (key(5), TABLE, place(3, 1))]);
        assert_eq!(index.find(&key(1), TABLE), Some(place(4, 0)));
        assert_eq!(index.find(&key(5), TABLE), Some(place(3, 1)));
        assert_eq!((index.find(&other, TABLE), index.find(&key(2), TABLE)), (None, None));
        assert_eq!(index.file_bytes(), 50);
        let gone = index.reclaim(|_| false).unwrap();
        assert_eq!((gone.segment, gone.kept.len()), (3, 1), "what was asked for is kept");
    }
}
