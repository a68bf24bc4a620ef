//! Latency histogram with logarithmic buckets at most 1.6 % wide.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// Buckets per power of two.
const BUCKETS_PER_DOUBLING: usize = 64;
const BUCKETS_PER_DOUBLING_BITS: u32 = BUCKETS_PER_DOUBLING.trailing_zeros();

/// Latency histogram.
#[derive(Debug, Clone, Default)]
pub struct LatencyHistogram {
    /// Numbers of operations, indexed by [`bucket`] of their time in microseconds.
    counts: Vec<u64>,
    count: u64,
    sum: Duration,
    max: Duration,
}

impl LatencyHistogram {
    pub fn record(&mut self, time: Duration) {
        let slot = bucket(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        if self.counts.len() <= slot {
            self.counts.resize(slot + 1, 0);
        }
        self.counts[slot] += 1;
        self.count += 1;
        self.sum += time;
        self.max = self.max.max(time);
    }

    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    #[must_use]
    pub fn mean(&self) -> Duration {
        if self.count == 0 { Duration::ZERO } else { self.sum.div_f64(self.count as f64) }
    }

    /// Returns the latency quantile for `share` (0.99 for p99); zero without operations.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count is a count")]
    pub fn percentile(&self, share: f64) -> Duration {
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (slot, count) in self.counts.iter().enumerate() {
            seen += count;
            if wanted <= seen {
                return Duration::from_micros(upper_bound(slot)).min(self.max);
            }
        }
        Duration::ZERO
    }
}

fn bucket(micros: u64) -> usize {
    if micros < BUCKETS_PER_DOUBLING as u64 {
        return micros as usize;
    }
    let shift = u64::BITS - 1 - micros.leading_zeros() - BUCKETS_PER_DOUBLING_BITS;
    let step = (micros >> shift) as usize - BUCKETS_PER_DOUBLING;
    BUCKETS_PER_DOUBLING + shift as usize * BUCKETS_PER_DOUBLING + step
}

/// Returns the greatest time in the bucket, in microseconds.
fn upper_bound(slot: usize) -> u64 {
    if slot < BUCKETS_PER_DOUBLING {
        return slot as u64;
    }
    let shift = (slot / BUCKETS_PER_DOUBLING - 1) as u32;
    let step = (slot % BUCKETS_PER_DOUBLING + BUCKETS_PER_DOUBLING + 1) as u64;
    (step << shift) - 1
}
