//! Which rows of a shard are of which bucket.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{BUCKETS, BucketKeys};

/// A shard with more runs was not written bucket by bucket: that its rows have buckets is of no use then.
const RUNS_MAX: usize = 4 * BUCKETS;

/// The buckets of a shard's rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardBuckets {
    /// What the buckets are by: see [`BucketKeys::scheme`].
    pub scheme: u64,
    /// Neighbouring rows of one bucket: its number, and how many they are. In the order of rows.
    runs: Vec<(u8, u32)>,
}

impl ShardBuckets {
    /// Of runs in the order of rows.
    pub(crate) fn new(scheme: u64, runs: Vec<(u8, u32)>) -> Self {
        Self { scheme, runs }
    }

    /// Neighbouring rows of one bucket: its number, and how many they are.
    pub(crate) fn runs(&self) -> &[(u8, u32)] {
        &self.runs
    }

    /// The buckets that some of its rows are of, as bits.
    #[must_use]
    pub fn present(&self) -> u64 {
        self.runs.iter().fold(0, |bits, (bucket, _)| bits | 1 << bucket)
    }

    /// Whether there are so many rows, all with a bucket that there is.
    #[must_use]
    pub fn are_of(&self, rows: u64) -> bool {
        let counted: u64 = self.runs.iter().map(|(_, count)| u64::from(*count)).sum();
        counted == rows && self.runs.iter().all(|(bucket, _)| usize::from(*bucket) < BUCKETS)
    }

    /// The rows of the buckets that are wanted, by their numbers in the shard: in order, no two ranges touch.
    #[must_use]
    pub fn rows(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut start = 0;
        for (bucket, count) in &self.runs {
            let end = start + u64::from(*count);
            if is_wanted(usize::from(*bucket)) {
                match ranges.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => ranges.push(start..end),
                }
            }
            start = end;
        }
        ranges
    }
}

/// The buckets of rows that are being written.
#[derive(Debug, Default)]
pub struct BucketRuns {
    runs: Vec<(u8, u32)>,
    are_many: bool,
}

impl BucketRuns {
    /// Rows in the order in which they are written.
    pub fn add(&mut self, buckets: &[u8]) {
        if self.are_many {
            return;
        }
        for bucket in buckets {
            match self.runs.last_mut() {
                Some((last, count)) if last == bucket && *count < u32::MAX => *count += 1,
                _ => self.runs.push((*bucket, 1)),
            }
        }
        if RUNS_MAX < self.runs.len() {
            *self = Self { runs: Vec::new(), are_many: true };
        }
    }

    /// The bucket of the last row.
    #[must_use]
    pub fn last(&self) -> Option<u8> {
        self.runs.last().map(|(bucket, _)| *bucket)
    }

    /// What the catalog keeps of them; `None` where they lie in disorder.
    #[must_use]
    pub fn finish(self, keys: &BucketKeys) -> Option<ShardBuckets> {
        (!self.are_many).then(|| ShardBuckets { scheme: keys.scheme(), runs: self.runs })
    }
}
