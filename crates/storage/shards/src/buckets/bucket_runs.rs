//! Buckets of the rows of a shard, as runs.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{BUCKET_COUNT, BucketKeys};

/// Largest number of runs: a shard with more was not written bucket by bucket, so its buckets are of no use.
const RUNS_MAX: usize = 4 * BUCKET_COUNT;

/// Buckets of a shard's rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardBuckets {
    /// Scheme of the buckets: see [`BucketKeys::scheme`].
    pub scheme: u64,
    /// Runs of rows of one bucket, in row order: bucket and number of rows.
    runs: Vec<(u8, u32)>,
}

impl ShardBuckets {
    /// Creates the buckets from runs in row order.
    pub(crate) fn new(scheme: u64, runs: Vec<(u8, u32)>) -> Self {
        Self { scheme, runs }
    }

    /// Returns the runs of rows of one bucket, in row order: bucket and number of rows.
    pub(crate) fn runs(&self) -> &[(u8, u32)] {
        &self.runs
    }

    /// Returns the buckets that occur, as a bit set.
    #[must_use]
    pub fn bucket_set(&self) -> u64 {
        self.runs.iter().fold(0, |bits, (bucket, _)| bits | 1 << bucket)
    }

    /// Returns true if the runs cover exactly `rows` rows and all buckets are valid.
    #[must_use]
    pub fn is_valid_for(&self, rows: u64) -> bool {
        let counted: u64 = self.runs.iter().map(|(_, count)| u64::from(*count)).sum();
        counted == rows && self.runs.iter().all(|(bucket, _)| usize::from(*bucket) < BUCKET_COUNT)
    }

    /// Returns the rows of the wanted buckets, as ascending ranges that do not touch.
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

/// Collects the buckets of rows while they are written.
#[derive(Debug, Default)]
pub struct BucketRunsBuilder {
    runs: Vec<(u8, u32)>,
    /// True once there were too many runs.
    is_overflowed: bool,
}

impl BucketRunsBuilder {
    /// Adds the buckets of the next rows.
    pub fn add(&mut self, buckets: &[u8]) {
        if self.is_overflowed {
            return;
        }
        for bucket in buckets {
            match self.runs.last_mut() {
                Some((last, count)) if last == bucket && *count < u32::MAX => *count += 1,
                _ => self.runs.push((*bucket, 1)),
            }
        }
        if RUNS_MAX < self.runs.len() {
            *self = Self { runs: Vec::new(), is_overflowed: true };
        }
    }

    /// Returns the bucket of the last row.
    #[must_use]
    pub fn last(&self) -> Option<u8> {
        self.runs.last().map(|(bucket, _)| *bucket)
    }

    /// Returns the buckets for the catalog; `None` if the rows are not in bucket order.
    #[must_use]
    pub fn finish(self, keys: &BucketKeys) -> Option<ShardBuckets> {
        (!self.is_overflowed).then(|| ShardBuckets { scheme: keys.scheme(), runs: self.runs })
    }
}
