//! Eviction from memory: S3-FIFO (Yang et al., SOSP 2023).
//!
//! A new block enters a small queue of a tenth of the capacity and leaves the cache soon unless it is read again: a
//! large scan that reads everything once evicts little of what is read often. A block that returns soon after its
//! eviction enters the main queue directly. Pinned blocks are in no queue, so they are never evicted.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use types::Oid;

use super::tier_stats::TableStats;

/// The small queue takes one part in this many of the capacity.
const SMALL_QUEUE_DIVISOR: u64 = 10;
/// Pinned blocks take at most one part in this many of the capacity; further ones are treated as not pinned.
const PINNED_DIVISOR: u64 = 2;
/// Cap of an entry's use counter.
const USE_COUNT_MAX: u8 = 3;

/// Byte-bounded map with S3-FIFO eviction. Does no locking and reads no clock.
#[derive(Debug)]
pub(super) struct EvictionQueues<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Small queue; may contain stale keys of entries that have moved or gone.
    small_queue: VecDeque<K>,
    /// Main queue; may contain stale keys, too.
    main_queue: VecDeque<K>,
    /// Keys evicted recently from the small queue, oldest first.
    ghost_queue: VecDeque<K>,
    /// The same keys as a set.
    ghost_set: HashSet<K>,
    small_bytes: u64,
    pinned_bytes: u64,
    bytes: u64,
    bytes_max: u64,
    counts: TableStats,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    /// Table whose scan inserted or pinned the entry.
    table: Oid,
    bytes: u64,
    /// Reads since it was inserted or last passed over for eviction, at most [`USE_COUNT_MAX`].
    use_count: u8,
    /// Queue that the entry is in.
    queue: Queue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
/// Queue of an entry.
enum Queue {
    Small,
    Main,
    Pinned,
}

/// Decision of the retention policy about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retention {
    /// The entry is removed.
    Remove,
    /// The entry is not pinned, or no longer.
    Evictable,
    /// The entry stays as it is, pinned or not.
    Unchanged,
}

impl<K: Copy + Eq + Hash, V> EvictionQueues<K, V> {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            entries: HashMap::new(),
            small_queue: VecDeque::new(),
            main_queue: VecDeque::new(),
            ghost_queue: VecDeque::new(),
            ghost_set: HashSet::new(),
            small_bytes: 0,
            pinned_bytes: 0,
            bytes: 0,
            bytes_max,
            counts: TableStats::new(),
        }
    }

    /// Returns the value of a key and counts a hit or miss for `table`. With `pin`, pins the entry and charges it to
    /// `table`.
    pub(super) fn get(&mut self, key: &K, table: Oid, pin: bool) -> Option<&V> {
        let counts = self.counts.for_table(table);
        let Some(entry) = self.entries.get_mut(key) else {
            counts.misses += 1;
            return None;
        };
        counts.hits += 1;
        entry.use_count = USE_COUNT_MAX.min(entry.use_count + 1);
        if pin && entry.queue != Queue::Pinned && self.pinned_bytes + entry.bytes <= self.bytes_max / PINNED_DIVISOR {
            if entry.queue == Queue::Small {
                self.small_bytes -= entry.bytes;
            }
            self.pinned_bytes += entry.bytes;
            entry.queue = Queue::Pinned;
            self.counts.for_table(entry.table).remove_block(entry.bytes);
            self.counts.for_table(table).add_block(entry.bytes);
            entry.table = table;
        }
        Some(&entry.value)
    }

    /// Inserts a value and returns the values evicted for it. Returns the value itself if the key is present or the
    /// value exceeds the capacity.
    pub(super) fn put(&mut self, key: K, table: Oid, pin: bool, value: V, bytes: u64) -> Vec<V> {
        if self.bytes_max < bytes || self.entries.contains_key(&key) {
            return vec![value];
        }
        let was_here = self.ghost_set.remove(&key);
        if was_here {
            self.ghost_queue.retain(|ghost| *ghost != key);
        }
        let place = if pin && self.pinned_bytes + bytes <= self.bytes_max / PINNED_DIVISOR {
            self.pinned_bytes += bytes;
            Queue::Pinned
        } else if was_here {
            self.main_queue.push_back(key);
            Queue::Main
        } else {
            self.small_queue.push_back(key);
            self.small_bytes += bytes;
            Queue::Small
        };
        self.bytes += bytes;
        self.counts.for_table(table).add_block(bytes);
        self.entries.insert(key, Entry { value, table, bytes, use_count: 0, queue: place });
        let mut evicted = Vec::new();
        while self.bytes_max < self.bytes {
            evicted.extend(self.evict_step());
        }
        evicted
    }

    /// Changes the capacity and returns the values evicted for that.
    pub(super) fn set_capacity(&mut self, bytes_max: u64) -> Vec<V> {
        self.bytes_max = bytes_max;
        if bytes_max / PINNED_DIVISOR < self.pinned_bytes {
            // The next read pins the entry again if there is room.
            for (key, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.queue == Queue::Pinned) {
                entry.queue = Queue::Main;
                self.main_queue.push_back(*key);
            }
            self.pinned_bytes = 0;
        }
        let mut evicted = Vec::new();
        while self.bytes_max < self.bytes {
            evicted.extend(self.evict_step());
        }
        evicted
    }

    /// Applies a retention policy to all entries and returns the removed values.
    pub(super) fn apply_retention(&mut self, fate: impl Fn(&K, Oid) -> Retention) -> Vec<V> {
        let fates: Vec<(K, Retention)> = (self.entries.iter())
            .map(|(key, entry)| (*key, fate(key, entry.table)))
            .filter(|(_, fate)| *fate != Retention::Unchanged)
            .collect();
        let mut gone = Vec::new();
        for (key, fate) in fates {
            let entry = self.entries.get_mut(&key).expect("entries listed above are still present");
            let was = entry.queue;
            if fate == Retention::Remove {
                let entry = self.entries.remove(&key).expect("entries listed above are still present");
                self.bytes -= entry.bytes;
                self.counts.for_table(entry.table).remove_block(entry.bytes);
                match was {
                    Queue::Small => self.small_bytes -= entry.bytes,
                    Queue::Pinned => self.pinned_bytes -= entry.bytes,
                    Queue::Main => (),
                }
                gone.push(entry.value);
            } else if was == Queue::Pinned {
                self.pinned_bytes -= entry.bytes;
                entry.queue = Queue::Main;
                self.main_queue.push_back(key);
            }
        }
        let is_in = |key: &K, place: Queue| self.entries.get(key).is_some_and(|entry| entry.queue == place);
        self.small_queue.retain(|key| is_in(key, Queue::Small));
        self.main_queue.retain(|key| is_in(key, Queue::Main));
        gone
    }

    /// Returns true if the entry is hot: pinned, in the main queue, or read again since it was inserted.
    pub(super) fn is_hot(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.queue != Queue::Small || 0 < entry.use_count)
    }

    /// Returns copies of the hot entries: pinned ones first, then by number of uses, descending.
    pub(super) fn hot_entries(&self) -> Vec<(K, Oid, V)>
    where
        V: Clone,
    {
        let mut hot: Vec<(&K, &Entry<V>)> =
            self.entries.iter().filter(|(_, entry)| entry.queue != Queue::Small || 0 < entry.use_count).collect();
        hot.sort_by_key(|(_, entry)| std::cmp::Reverse((entry.queue == Queue::Pinned, entry.use_count)));
        hot.into_iter().map(|(key, entry)| (*key, entry.table, entry.value.clone())).collect()
    }

    /// Returns the keys of a table's hot entries.
    pub(super) fn hot_keys(&self, table: Oid) -> impl Iterator<Item = &K> {
        let is_kept =
            move |entry: &Entry<V>| entry.table == table && (entry.queue != Queue::Small || 0 < entry.use_count);
        self.entries.iter().filter(move |(_, entry)| is_kept(entry)).map(|(key, _)| key)
    }

    /// Returns true if the key is present, without counting a use.
    pub(super) fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    pub(super) fn counts(&self) -> &TableStats {
        &self.counts
    }

    /// Takes one step of eviction: returns an evicted value, or `None` if the step moved a used entry or dropped a
    /// stale key.
    fn evict_step(&mut self) -> Option<V> {
        let from_small = self.bytes_max / SMALL_QUEUE_DIVISOR < self.small_bytes || self.main_queue.is_empty();
        let (queue, place) =
            if from_small { (&mut self.small_queue, Queue::Small) } else { (&mut self.main_queue, Queue::Main) };
        let key = queue.pop_front().expect("every unpinned entry is queued, and at most half the capacity is pinned");
        let entry = self.entries.get_mut(&key).filter(|entry| entry.queue == place)?;
        if from_small {
            self.small_bytes -= entry.bytes;
        }
        if 0 < entry.use_count {
            entry.use_count = if from_small { 0 } else { entry.use_count - 1 };
            entry.queue = Queue::Main;
            self.main_queue.push_back(key);
            return None;
        }
        let entry = self.entries.remove(&key).expect("entry was looked up above");
        self.bytes -= entry.bytes;
        let counts = self.counts.for_table(entry.table);
        counts.remove_block(entry.bytes);
        counts.evictions += 1;
        if from_small {
            self.add_ghost(key);
        }
        Some(entry.value)
    }

    /// Remembers an evicted key; at most as many as there are entries, but at least 64.
    fn add_ghost(&mut self, key: K) {
        if self.ghost_set.insert(key) {
            self.ghost_queue.push_back(key);
        }
        while self.entries.len().max(64) < self.ghost_queue.len() {
            if let Some(oldest) = self.ghost_queue.pop_front() {
                self.ghost_set.remove(&oldest);
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
        let mut queues = EvictionQueues::new(1000);
        for key in 0..50 {
            assert!(queues.put(key, TABLE, false, key, 10).is_empty());
            queues.get(&key, TABLE, false);
        }
        for key in 1_000..11_000 {
            queues.put(key, TABLE, false, key, 10);
            // The first entries stay in use.
            queues.get(&(key % 50), TABLE, false);
        }
        let left = (0..50).filter(|key| queues.get(key, TABLE, false).is_some()).count();
        assert!(45 <= left, "{left} of 50 are left");
        assert!(queues.counts().sum().bytes <= 1000);
    }

    #[test]
    fn what_fits_stays() {
        let mut queues = EvictionQueues::new(1000);
        (0..100).for_each(|key| assert!(queues.put(key, TABLE, false, key, 10).is_empty()));
        assert!((0..100).all(|key| queues.get(&key, TABLE, false).is_some()));
        assert_eq!(queues.put(5, TABLE, false, 5, 10), [5]);
        assert_eq!(queues.put(200, TABLE, false, 200, 1001), [200]);
        assert_eq!((queues.counts().sum().blocks, queues.counts().sum().evictions), (100, 0));
    }

    #[test]
    fn less_room_lets_things_go_and_more_takes_them_again() {
        let mut queues = EvictionQueues::new(1000);
        (0..50).for_each(|key| assert!(queues.put(key, TABLE, true, key, 10).is_empty()));
        (50..100).for_each(|key| assert!(queues.put(key, TABLE, false, key, 10).is_empty()));
        let gone = queues.set_capacity(200);
        assert_eq!((gone.len(), queues.bytes()), (80, 200), "what was pinned goes too");
        (200..300).for_each(|key| drop(queues.put(key, TABLE, true, key, 10)));
        assert_eq!((queues.bytes(), queues.set_capacity(0).len()), (200, 20));
        assert_eq!(queues.put(1, TABLE, false, 1, 10), [1]);
        assert!(queues.set_capacity(10).is_empty());
        assert!(queues.put(1, TABLE, false, 1, 10).is_empty());
    }

    #[test]
    fn what_comes_back_soon_is_kept_longer() {
        let mut queues = EvictionQueues::new(100);
        (0..20).for_each(|key| drop(queues.put(key, TABLE, false, key, 10)));
        assert!(queues.get(&3, TABLE, false).is_none());
        queues.put(3, TABLE, false, 3, 10);
        (100..140).for_each(|key| drop(queues.put(key, TABLE, false, key, 10)));
        assert!(queues.get(&3, TABLE, false).is_some());
        assert!(queues.counts().sum().bytes <= 100);
    }

    #[test]
    fn counts_are_those_of_whose_scan_asks_and_whose_brought() {
        let (one, other) = (Oid(1), Oid(2));
        let mut queues = EvictionQueues::new(100);
        (0..5).for_each(|key| drop(queues.put(key, one, false, key, 10)));
        assert!(queues.get(&0, other, false).is_some() && queues.get(&9, other, false).is_none());
        (100..140).for_each(|key| drop(queues.put(key, other, false, key, 10)));
        let mut counts: Vec<_> = queues.counts().by_table();
        counts.sort_by_key(|(table, _)| *table);
        let [(_, of_one), (_, of_other)] = counts[..] else { panic!("two tables are counted: {counts:?}") };
        assert_eq!((of_one.hits, of_one.misses, of_other.hits, of_other.misses), (0, 0, 1, 1));
        assert_eq!((of_one.blocks + of_one.evictions, of_other.blocks + of_other.evictions), (5, 40));
        assert_eq!((of_one.bytes, of_other.bytes), (of_one.blocks * 10, of_other.blocks * 10));
        assert!(0 < of_one.blocks, "what was asked for stays");
    }

    #[test]
    fn what_is_pinned_stays_as_far_as_half_of_the_room_goes() {
        let (pinned, other) = (Oid(1), Oid(2));
        let mut queues = EvictionQueues::new(100);
        (0..8).for_each(|key| drop(queues.put(key, pinned, true, key, 10)));
        (100..140).for_each(|key| drop(queues.put(key, other, false, key, 10)));
        let left = |queues: &mut EvictionQueues<u32, u32>| {
            (0..8).filter(|key| queues.get(key, pinned, false).is_some()).count()
        };
        assert_eq!(left(&mut queues), 5, "the others are as normal ones");
        // Entries that are no longer pinned are evicted like others; removed ones disappear at once.
        assert_eq!(
            queues.apply_retention(|key, _| if *key < 2 { Retention::Remove } else { Retention::Evictable }).len(),
            2
        );
        assert_eq!(left(&mut queues), 3);
        for key in (200..260).chain(200..260) {
            queues.put(key, other, false, key, 10);
            queues.get(&key, other, false);
        }
        assert_eq!(left(&mut queues), 0);
        assert_eq!(queues.counts().sum().bytes, 100);
    }

    #[test]
    fn what_is_there_is_pinned_by_who_reads_it() {
        let (pinned, other) = (Oid(1), Oid(2));
        let mut queues = EvictionQueues::new(100);
        (0..6).for_each(|key| drop(queues.put(key, other, false, key, 10)));
        (0..6).for_each(|key| assert!(queues.get(&key, pinned, true).is_some()));
        for key in (200..260).chain(200..260) {
            queues.put(key, other, false, key, 10);
            queues.get(&key, other, false);
        }
        assert_eq!((0..6).filter(|key| queues.get(key, other, false).is_some()).count(), 5);
        let of_pinned = queues.counts().by_table().into_iter().find(|(table, _)| *table == pinned).unwrap().1;
        assert_eq!((of_pinned.blocks, of_pinned.bytes), (5, 50));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn bytes_are_those_of_what_is_there(steps in proptest::collection::vec((0_u8..5, 0_u32..40, 1_u64..40, 1_u32..4), 0..400)) {
            let mut queues = EvictionQueues::new(200);
            for (step, key, bytes, table) in steps {
                match step {
                    0 | 1 => drop(queues.put(key, Oid(table), step == 1, key, bytes)),
                    2 | 3 => drop(queues.get(&key, Oid(table), step == 3).copied()),
                    _ => drop(queues.apply_retention(|other, of| match (other % 7 == key % 7, of == Oid(table)) {
                        (true, _) => Retention::Remove,
                        (_, true) => Retention::Evictable,
                        _ => Retention::Unchanged,
                    })),
                }
                let sum = |place: Option<Queue>| {
                    let entries = queues.entries.values().filter(|entry| place.is_none_or(|place| entry.queue == place));
                    entries.map(|entry| entry.bytes).sum::<u64>()
                };
                proptest::prop_assert!(queues.bytes <= 200 && queues.pinned_bytes <= 100);
                proptest::prop_assert_eq!(queues.bytes, sum(None));
                proptest::prop_assert_eq!(queues.small_bytes, sum(Some(Queue::Small)));
                proptest::prop_assert_eq!(queues.pinned_bytes, sum(Some(Queue::Pinned)));
                let counted = queues.counts.sum();
                proptest::prop_assert_eq!((counted.blocks, counted.bytes), (queues.entries.len() as u64, queues.bytes));
            }
        }
    }
}
