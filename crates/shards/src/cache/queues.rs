//! What stays when memory runs short: S3-FIFO (Yang et al., SOSP 2023).
//!
//! What comes for the first time waits in a small queue, a tenth of the whole, and leaves it soon unless it was asked for again: a scan of
//! much that is read once pushes out little of what is read often. What comes back soon after it left goes to the main queue at once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use types::Oid;

use super::counts::Counts;

/// The small queue's part of all bytes.
const SMALL_PART: u64 = 10;
/// Uses that count at most.
const USES_MAX: u8 = 3;

/// Values by key, of at most so many bytes. Pure: no lock, no clock.
#[derive(Debug)]
pub(super) struct Queues<K, V> {
    entries: HashMap<K, Entry<V>>,
    small: VecDeque<K>,
    main: VecDeque<K>,
    /// Those that left the small queue lately.
    ghosts: VecDeque<K>,
    is_ghost: HashSet<K>,
    small_bytes: u64,
    bytes: u64,
    bytes_max: u64,
    counts: Counts,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    /// Whose scan brought it.
    table: Oid,
    bytes: u64,
    uses: u8,
}

impl<K: Copy + Eq + Hash, V> Queues<K, V> {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            entries: HashMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
            is_ghost: HashSet::new(),
            small_bytes: 0,
            bytes: 0,
            bytes_max,
            counts: Counts::new(),
        }
    }

    /// The value of a key, for a scan of `table`.
    pub(super) fn get(&mut self, key: &K, table: Oid) -> Option<&V> {
        let counts = self.counts.of(table);
        let Some(entry) = self.entries.get_mut(key) else {
            counts.misses += 1;
            return None;
        };
        counts.hits += 1;
        entry.uses = USES_MAX.min(entry.uses + 1);
        Some(&entry.value)
    }

    /// Puts a value there, and gives back what has to go for it: the value itself, where it is larger than all there is room for. A value
    /// that is there already stays.
    pub(super) fn put(&mut self, key: K, table: Oid, value: V, bytes: u64) -> Vec<V> {
        if self.bytes_max < bytes || self.entries.contains_key(&key) {
            return vec![value];
        }
        if self.is_ghost.remove(&key) {
            self.ghosts.retain(|ghost| *ghost != key);
            self.main.push_back(key);
        } else {
            self.small.push_back(key);
            self.small_bytes += bytes;
        }
        self.bytes += bytes;
        let counts = self.counts.of(table);
        (counts.blocks, counts.bytes) = (counts.blocks + 1, counts.bytes + bytes);
        self.entries.insert(key, Entry { value, table, bytes, uses: 0 });
        let mut evicted = Vec::new();
        while self.bytes_max < self.bytes {
            evicted.extend(self.evict());
        }
        evicted
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// One step towards less: something leaves, or is found to be in use.
    fn evict(&mut self) -> Option<V> {
        let from_small = self.bytes_max / SMALL_PART < self.small_bytes || self.main.is_empty();
        let queue = if from_small { &mut self.small } else { &mut self.main };
        let key = queue.pop_front().expect("bytes are those of queued entries");
        let entry = self.entries.get_mut(&key).expect("what is queued is there");
        if from_small {
            self.small_bytes -= entry.bytes;
        }
        if 0 < entry.uses {
            entry.uses = if from_small { 0 } else { entry.uses - 1 };
            self.main.push_back(key);
            return None;
        }
        let entry = self.entries.remove(&key).expect("found above");
        self.bytes -= entry.bytes;
        let counts = self.counts.of(entry.table);
        (counts.blocks, counts.bytes) = (counts.blocks - 1, counts.bytes - entry.bytes);
        counts.evictions += 1;
        if from_small {
            self.remember(key);
        }
        Some(entry.value)
    }

    /// As many as there are entries are remembered.
    fn remember(&mut self, key: K) {
        if self.is_ghost.insert(key) {
            self.ghosts.push_back(key);
        }
        while self.entries.len().max(64) < self.ghosts.len() {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.is_ghost.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Oid = Oid(1);

    #[test]
    fn a_scan_of_much_leaves_what_is_used_often() {
        let mut queues = Queues::new(1000);
        for key in 0..50 {
            assert!(queues.put(key, TABLE, key, 10).is_empty());
            queues.get(&key, TABLE);
        }
        for key in 1_000..11_000 {
            queues.put(key, TABLE, key, 10);
            // Somebody goes on using the first ones.
            queues.get(&(key % 50), TABLE);
        }
        let left = (0..50).filter(|key| queues.get(key, TABLE).is_some()).count();
        assert!(45 <= left, "{left} of 50 are left");
        assert!(queues.counts().sum().bytes <= 1000);
    }

    #[test]
    fn what_fits_stays() {
        let mut queues = Queues::new(1000);
        (0..100).for_each(|key| assert!(queues.put(key, TABLE, key, 10).is_empty()));
        assert!((0..100).all(|key| queues.get(&key, TABLE).is_some()));
        assert_eq!(queues.put(5, TABLE, 5, 10), [5]);
        assert_eq!(queues.put(200, TABLE, 200, 1001), [200]);
        assert_eq!((queues.counts().sum().blocks, queues.counts().sum().evictions), (100, 0));
    }

    #[test]
    fn what_comes_back_soon_is_kept_longer() {
        let mut queues = Queues::new(100);
        (0..20).for_each(|key| drop(queues.put(key, TABLE, key, 10)));
        assert!(queues.get(&3, TABLE).is_none());
        queues.put(3, TABLE, 3, 10);
        (100..140).for_each(|key| drop(queues.put(key, TABLE, key, 10)));
        assert!(queues.get(&3, TABLE).is_some());
        assert!(queues.counts().sum().bytes <= 100);
    }

    #[test]
    fn counts_are_those_of_whose_scan_asks_and_whose_brought() {
        let (one, other) = (Oid(1), Oid(2));
        let mut queues = Queues::new(100);
        (0..5).for_each(|key| drop(queues.put(key, one, key, 10)));
        assert!(queues.get(&0, other).is_some() && queues.get(&9, other).is_none());
        (100..140).for_each(|key| drop(queues.put(key, other, key, 10)));
        let mut counts: Vec<_> = queues.counts().by_table();
        counts.sort_by_key(|(table, _)| *table);
        let [(_, of_one), (_, of_other)] = counts[..] else { panic!("two tables are counted: {counts:?}") };
        assert_eq!((of_one.hits, of_one.misses, of_other.hits, of_other.misses), (0, 0, 1, 1));
        assert_eq!((of_one.blocks + of_one.evictions, of_other.blocks + of_other.evictions), (5, 40));
        assert_eq!((of_one.bytes, of_other.bytes), (of_one.blocks * 10, of_other.blocks * 10));
        assert!(0 < of_one.blocks, "what was asked for stays");
    }
}
