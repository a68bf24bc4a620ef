//! Counts of recent reads of uncached pages: a page read repeatedly is worth caching.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;

/// Number of the read that caches a page. Not the second: one statement often reads a column twice, and packing it then
/// would only pay for later statements, which usually find it already cached by the background filler.
const READS_UNTIL_CACHED: u8 = 3;
/// Largest number of pages that are counted; the oldest is dropped first. This many pages hold about 17 billion values.
const ENTRIES_MAX: usize = 1 << 18;

/// Read counts by the hash of the key. Keys with equal hashes share a count, which at worst caches a page a read too
/// early.
#[derive(Debug)]
pub(super) struct RecentReads<K> {
    reads: HashMap<u64, u8>,
    insertion_order: VecDeque<u64>,
    hasher: RandomState,
    key_type: PhantomData<K>,
}

impl<K> Default for RecentReads<K> {
    fn default() -> Self {
        Self {
            reads: HashMap::new(),
            insertion_order: VecDeque::new(),
            hasher: RandomState::new(),
            key_type: PhantomData,
        }
    }
}

impl<K: Hash> RecentReads<K> {
    /// Counts a read; returns true if it is at least the third one, so that the page is to be cached.
    pub(super) fn record_read(&mut self, key: &K) -> bool {
        let hash = self.hasher.hash_one(key);
        let reads = self.reads.entry(hash).or_default();
        *reads = reads.saturating_add(1);
        let (is_new, is_kept) = (*reads == 1, READS_UNTIL_CACHED <= *reads);
        if is_new {
            self.insertion_order.push_back(hash);
        }
        if ENTRIES_MAX < self.insertion_order.len()
            && let Some(oldest) = self.insertion_order.pop_front()
        {
            self.reads.remove(&oldest);
        }
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered() {
        let mut reads = RecentReads::default();
        let third = |reads: &mut RecentReads<usize>, key| [(); 3].map(|()| reads.record_read(&key));
        assert_eq!(third(&mut reads, 0), [false, false, true]);
        (1..=ENTRIES_MAX).for_each(|key| assert!(!reads.record_read(&key)));
        assert_eq!(third(&mut reads, 0), [false, false, true], "it was forgotten");
        assert_eq!(third(&mut reads, ENTRIES_MAX), [false, true, true]);
    }
}
