//! Whether a worker's table makes rows fewer, and what is done where it does not: its groups are put aside, so that the table stays one that
//! a cache holds.

use std::collections::HashSet;

/// Groups of a table that a cache holds. With one more batch of them a hash table has no need to grow.
pub(super) const FEW_GROUPS: usize = (1 << 15) - crate::BATCH_ROWS;

/// Of the keys a part is counted, by their hashes: one in so many.
const SAMPLED: u64 = 64;

/// What a worker's rows have shown.
#[derive(Debug)]
pub(super) struct Reduction {
    /// Groups at which a table is looked at for the first time.
    few: usize,
    /// Groups at which it is looked at next.
    next: usize,
    /// Rows and groups of the table when it was looked at last.
    seen: (usize, usize),
    /// Groups that have been put aside.
    aside: usize,
    /// The hashes of the keys that are counted.
    sampled: HashSet<u64>,
}

impl Reduction {
    /// Looks at tables of so many groups.
    pub(super) fn of(few: usize) -> Self {
        Self { few, next: few, seen: (0, 0), aside: 0, sampled: HashSet::new() }
    }

    /// Groups of a table that is looked at.
    pub(super) fn few(&self) -> usize {
        self.few
    }

    /// Whether a table of so many groups is to be looked at.
    #[inline]
    pub(super) fn is_due(&self, groups: usize) -> bool {
        self.next <= groups
    }

    /// Whether most of the rows since the last look went to groups that were there.
    pub(super) fn reduces(&self, rows: usize, groups: usize) -> bool {
        let (rows_seen, groups_seen) = self.seen;
        (groups - groups_seen) * 2 <= rows - rows_seen
    }

    /// Learns of the keys of groups, by their hashes. Those of the same key are equal whenever it comes.
    pub(super) fn learn(&mut self, hashes: &[u64]) {
        self.sampled.extend(hashes.iter().filter(|hash| **hash % SAMPLED == 0));
    }

    /// Whether keys come again too seldom for a table of all of them: with those in the table, groups were put aside less than twice each.
    pub(super) fn has_new(&self, groups: usize) -> bool {
        let distinct = self.sampled.len().max(1) * SAMPLED as usize;
        self.aside + groups < distinct * 2
    }

    /// The table goes on.
    pub(super) fn go_on(&mut self, rows: usize, groups: usize) {
        self.seen = (rows, groups);
        self.next = groups * 2;
    }

    /// The table's groups have been put aside.
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
        // What was there before does not count: of the next rows all were new.
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
        assert!((1..=2).contains(&rounds), "put aside {rounds} times, and the same keys again");
        let mut reduction = Reduction::of(1_000);
        for round in 0..50 {
            let hashes: Vec<u64> = (round * 1_000..(round + 1) * 1_000).map(hash).collect();
            reduction.learn(&hashes);
            assert!(reduction.has_new(1_000), "round {round} has no key of another");
            reduction.begin_again(1_000);
        }
    }
}
