//! What was read lately and is not kept: who comes again and again is not passing through.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;

/// The read that finds out that a key comes again. One statement often reads a column twice, and packing it would pay for others only, who
/// find it packed by who fills the cache when nobody reads, if there is such a moment.
const KEPT_AT: u8 = 3;
/// So many are remembered, the latest: pages of some ten thousand million values.
const REMEMBERED_MAX: usize = 1 << 18;

/// Keys that were asked for, by their hashes: two that share one are taken for the same, and kept a read too early.
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
    /// Whether the key was read before so often that it is to be kept now; this read is noted.
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
