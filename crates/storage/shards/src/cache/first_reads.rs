//! Counts of recent reads of uncached pages: a page read repeatedly is worth caching.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;

/// Number of the read that caches a page. Not the second: one statement often reads a column twice, and packing it then
/// would only pay for later statements, which usually find it already cached by the background filler.
const KEPT_AT: u8 = 3;
/// Largest number of pages that are counted; the oldest is dropped first. This many pages hold about 17 billion values.
const REMEMBERED_MAX: usize = 1 << 18;

/// Read counts by the hash of the key. Keys with equal hashes share a count, which at worst caches a page a read too
/// early.
#[derive(Debug)]
pub(super) struct FirstReads<K> {
    reads: HashMap<u64, u8>,
    order: VecDeque<u64>,
    hasher: RandomState,
    of: PhantomData<K>,
}

impl<K> Default for FirstReads<K> {
    fn default() -> Self {
        Self { reads: HashMap::new(), order: VecDeque::new(), hasher: RandomState::new(), of: PhantomData }
    }
}

impl<K: Hash> FirstReads<K> {
    /// Counts a read; returns true if it is at least the third one, so that the page is to be cached.
    pub(super) fn comes_again(&mut self, key: &K) -> bool {
        let hash = self.hasher.hash_one(key);
        let reads = self.reads.entry(hash).or_default();
        *reads = reads.saturating_add(1);
        let (is_new, is_kept) = (*reads == 1, KEPT_AT <= *reads);
        if is_new {
            self.order.push_back(hash);
        }
        if REMEMBERED_MAX < self.order.len()
            && let Some(oldest) = self.order.pop_front()
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
        let mut reads = FirstReads::default();
        let third = |reads: &mut FirstReads<usize>, key| [(); 3].map(|()| reads.comes_again(&key));
        assert_eq!(third(&mut reads, 0), [false, false, true]);
        (1..=REMEMBERED_MAX).for_each(|key| assert!(!reads.comes_again(&key)));
        assert_eq!(third(&mut reads, 0), [false, false, true], "it was forgotten");
        assert_eq!(third(&mut reads, REMEMBERED_MAX), [false, true, true]);
    }
}
