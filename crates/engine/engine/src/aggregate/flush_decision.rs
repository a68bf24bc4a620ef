//! Adaptive pre-aggregation: decides when a worker flushes its table, as it does not reduce rows.
//!
//! A table that maps many rows to few groups grows as it must. Where almost every row is a new group, the worker
//! flushes the table as radix partitions and starts a new one, so that the table stays in the CPU cache.

use std::collections::HashSet;

/// Groups of a table that fits in the CPU cache. One more batch of new groups does not make a hash table grow.
pub(super) const CACHED_TABLE_GROUPS: usize = (1 << 15) - crate::BATCH_ROWS;

/// Distinct keys are estimated from a sample: one of this many hashes.
const SAMPLE_RATE: u64 = 64;

/// Statistics of a worker's table, and the group count at which they are checked next.
#[derive(Debug)]
pub(super) struct ReductionStats {
    /// Groups at which a new table is checked for the first time.
    first_check: usize,
    /// Groups at which the table is checked next.
    next_check: usize,
    /// Rows and groups of the table at the last check.
    last_check: (usize, usize),
    /// Groups that have been flushed so far.
    flushed_groups: usize,
    /// Distinct hashes of the sampled keys.
    sampled_hashes: HashSet<u64>,
}

impl ReductionStats {
    /// Creates statistics whose first check is at `few` groups; `usize::MAX` never checks.
    pub(super) fn new(few: usize) -> Self {
        Self {
            first_check: few,
            next_check: few,
            last_check: (0, 0),
            flushed_groups: 0,
            sampled_hashes: HashSet::new(),
        }
    }

    /// Returns the group count of the first check.
    pub(super) fn first_check(&self) -> usize {
        self.first_check
    }

    /// Returns whether a table of `groups` groups is due for a check.
    #[inline]
    pub(super) fn is_check_due(&self, groups: usize) -> bool {
        self.next_check <= groups
    }

    /// Returns whether at least half of the rows since the last check belonged to existing groups.
    pub(super) fn reduces(&self, rows: usize, groups: usize) -> bool {
        let (rows_seen, groups_seen) = self.last_check;
        (groups - groups_seen) * 2 <= rows - rows_seen
    }

    /// Samples the keys of groups by their hashes, which for equal keys must be equal in every table.
    pub(super) fn sample(&mut self, hashes: &[u64]) {
        self.sampled_hashes.extend(hashes.iter().filter(|hash| **hash % SAMPLE_RATE == 0));
    }

    /// Returns whether keys repeat too rarely for one table of all of them: each distinct key would have been flushed
    /// less than twice on average, once the `groups` in the table are flushed.
    pub(super) fn keys_rarely_repeat(&self, groups: usize) -> bool {
        let distinct = self.sampled_hashes.len().max(1) * SAMPLE_RATE as usize;
        self.flushed_groups + groups < distinct * 2
    }

    /// Records that the table is not flushed; the next check is at twice as many groups.
    pub(super) fn defer_check(&mut self, rows: usize, groups: usize) {
        self.last_check = (rows, groups);
        self.next_check = groups * 2;
    }

    /// Records that the table's `groups` groups have been flushed.
    pub(super) fn record_flush(&mut self, groups: usize) {
        self.flushed_groups += groups;
        self.last_check = (0, 0);
        self.next_check = self.first_check;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_groups_that_are_there_reduce() {
        let mut reduction = ReductionStats::new(100);
        assert!(!reduction.is_check_due(99) && reduction.is_check_due(100));
        assert!(reduction.reduces(200, 100) && !reduction.reduces(199, 100));
        // Only rows since the last check matter: all of the next 100 were new groups.
        reduction.defer_check(1_000, 100);
        assert!(!reduction.is_check_due(199) && reduction.is_check_due(200));
        assert!(!reduction.reduces(1_100, 200));
        reduction.record_flush(200);
        assert!(reduction.is_check_due(100) && !reduction.reduces(150, 100));
    }

    #[test]
    fn keys_that_come_again_are_found_by_some_of_them() {
        let hash = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
        let hashes: Vec<u64> = (0..20_000).map(hash).collect();
        let mut reduction = ReductionStats::new(20_000);
        let mut rounds = 0;
        loop {
            reduction.sample(&hashes);
            if !reduction.keys_rarely_repeat(hashes.len()) {
                break;
            }
            reduction.record_flush(hashes.len());
            rounds += 1;
        }
        assert!((1..=2).contains(&rounds), "flushed {rounds} times although the same keys repeat");
        let mut reduction = ReductionStats::new(1_000);
        for round in 0..50 {
            let hashes: Vec<u64> = (round * 1_000..(round + 1) * 1_000).map(hash).collect();
            reduction.sample(&hashes);
            assert!(reduction.keys_rarely_repeat(1_000), "round {round} has no key of another");
            reduction.record_flush(1_000);
        }
    }
}
