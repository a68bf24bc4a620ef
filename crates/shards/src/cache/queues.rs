//! What stays when memory runs short: S3-FIFO (Yang et al., SOSP 2023).
//!
//! What comes for the first time waits in a small queue, a tenth of the whole, and leaves it soon unless it was asked for again: a scan of
//! much that is read once pushes out little of what is read often. What comes back soon after it left goes to the main queue at once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

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
    evictions: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
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
            evictions: 0,
        }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        let entry = self.entries.get_mut(key)?;
        entry.uses = USES_MAX.min(entry.uses + 1);
        Some(&entry.value)
    }

    /// Puts a value there, and gives back what has to go for it: the value itself, where it is larger than all there is room for. A value
    /// that is there already stays.
    pub(super) fn put(&mut self, key: K, value: V, bytes: u64) -> Vec<V> {
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
        self.entries.insert(key, Entry { value, bytes, uses: 0 });
        let mut evicted = Vec::new();
        while self.bytes_max < self.bytes {
            evicted.extend(self.evict());
        }
        evicted
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn evictions(&self) -> u64 {
        self.evictions
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
        self.evictions += 1;
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

    #[test]
    fn a_scan_of_much_leaves_what_is_used_often() {
        let mut queues = Queues::new(1000);
        for key in 0..50 {
            assert!(queues.put(key, key, 10).is_empty());
            queues.get(&key);
        }
        for key in 1_000..11_000 {
            queues.put(key, key, 10);
            // Somebody goes on using the first ones.
            queues.get(&(key % 50));
        }
        let left = (0..50).filter(|key| queues.get(key).is_some()).count();
        assert!(45 <= left, "{left} of 50 are left");
        assert!(queues.bytes() <= 1000);
    }

    #[test]
    fn what_fits_stays() {
        let mut queues = Queues::new(1000);
        (0..100).for_each(|key| assert!(queues.put(key, key, 10).is_empty()));
        assert!((0..100).all(|key| queues.get(&key).is_some()));
        assert_eq!(queues.put(5, 5, 10), [5]);
        assert_eq!(queues.put(200, 200, 1001), [200]);
        assert_eq!((queues.len(), queues.evictions()), (100, 0));
    }

    #[test]
    fn what_comes_back_soon_is_kept_longer() {
        let mut queues = Queues::new(100);
        (0..20).for_each(|key| drop(queues.put(key, key, 10)));
        assert!(queues.get(&3).is_none());
        queues.put(3, 3, 10);
        (100..140).for_each(|key| drop(queues.put(key, key, 10)));
        assert!(queues.get(&3).is_some());
        assert!(queues.bytes() <= 100);
    }
}
