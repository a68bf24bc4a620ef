//! Adaptive pre-aggregation: decides when a worker flushes its table, as it does not reduce rows.
//!
//! A table that maps many rows to few groups grows as it must. Where almost every row is a new group, the worker
//! flushes the table as radix partitions and starts a new one, so that the table stays in the CPU cache.

use std::collections::HashSet;

/// Groups of a table that fits in the CPU cache. One more batch of new groups does not make a hash table grow.
pub(super) const FEW_GROUPS: usize = (1 << 15) - crate::BATCH_ROWS;

/// Distinct keys are estimated from a sample: one of this many hashes.
const SAMPLED: u64 = 64;

/// Statistics of a worker's table, and the group count at which they are checked next.
#[derive(Debug)]
pub(super) struct Reduction {
    /// Groups at which a new table is checked for the first time.
    few: usize,
    /// Groups at which the table is checked next.
    next: usize,
    /// Rows and groups of the table at the last check.
    seen: (usize, usize),
    /// Groups that have been flushed so far.
    aside: usize,
    /// Distinct hashes of the sampled keys.
    sampled: HashSet<u64>,
}

impl Reduction {
    /// Creates statistics whose first check is at `few` groups; `usize::MAX` never checks.
    pub(super) fn of(few: usize) -> Self {
        Self { few, next: few, seen: (0, 0), aside: 0, sampled: HashSet::new() }
    }

    /// Returns the group count of the first check.
    pub(super) fn few(&self) -> usize {
        self.few
    }

    /// Returns whether a table of `groups` groups is due for a check.
    #[inline]
    pub(super) fn is_due(&self, groups: usize) -> bool {
        self.next <= groups
    }

    /// Returns whether at least half of the rows since the last check belonged to existing groups.
    pub(super) fn reduces(&self, rows: usize, groups: usize) -> bool {
        let (rows_seen, groups_seen) = self.seen;
        (groups - groups_seen) * 2 <= rows - rows_seen
    }

    /// Samples the keys of groups by their hashes, which for equal keys must be equal in every table.
    pub(super) fn learn(&mut self, hashes: &[u64]) {
        self.sampled.extend(hashes.iter().filter(|hash| **hash % SAMPLED == 0));
    }

    /// Returns whether keys repeat too rarely for one table of all of them: each distinct key would have been flushed
    /// less than twice on average, once the `groups` in the table are flushed.
    pub(super) fn has_new(&self, groups: usize) -> bool {
        let distinct = self.sampled.len().max(1) * SAMPLED as usize;
        self.aside + groups < distinct * 2
    }

    /// Records that the table is not flushed; the next check is at twice as many groups.
    pub(super) fn go_on(&mut self, rows: usize, groups: usize) {
        self.seen = (rows, groups);
        self.next = groups * 2;
    }

    /// Records that the table's `groups` groups have been flushed.
    pub(super) fn begin_again(&mut self, groups: usize) {
        self.aside += groups;
        self.seen = (0, 0);
        self.next = self.few;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_groups_that_are_there_reduce() {
        let mut reduction = Reduction::of(100);
        assert!(!reduction.is_due(99) && reduction.is_due(100));
        assert!(reduction.reduces(200, 100) && !reduction.reduces(199, 100));
        // Only rows since the last check matter: all of the next 100 were new groups.
        reduction.go_on(1_000, 100);
        assert!(!reduction.is_due(199) && reduction.is_due(200));
        assert!(!reduction.reduces(1_100, 200));
        reduction.begin_again(200);
        assert!(reduction.is_due(100) && !reduction.reduces(150, 100));
    }

    #[test]
    fn keys_that_come_again_are_found_by_some_of_them() {
        let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
        let hashes: Vec<u64> = (0..20_000).map(hash).collect();
        let mut reduction = Reduction::of(20_000);
        let mut rounds = 0;
        loop {
            reduction.learn(&hashes);
            if !reduction.has_new(hashes.len()) {
                break;
            }
            reduction.begin_again(hashes.len());
            rounds += 1;
        }
        assert!((1..=2).contains(&rounds), "flushed {rounds} times although the same keys repeat");
        let mut reduction = Reduction::of(1_000);
        for round in 0..50 {
            let hashes: Vec<u64> = (round * 1_000..(round + 1) * 1_000).map(hash).collect();
            reduction.learn(&hashes);
            assert!(reduction.has_new(1_000), "round {round} has no key of another");
            reduction.begin_again(1_000);
        }
    }
}
