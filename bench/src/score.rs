//! The single score of a benchmark run, computed as UnixBench does.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// Computes the geometric mean of the runs without the slowest third; `None` without runs.
#[must_use]
pub fn score(runs: &[Duration]) -> Option<Duration> {
    let mut runs = runs.to_vec();
    runs.sort();
    let kept = runs.len() - runs.len() / 3;
    geometric_mean(runs.get(..kept)?.iter().map(Duration::as_secs_f64)).map(Duration::from_secs_f64)
}

/// Computes the geometric mean; `None` without values.
pub fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        // A floor of one nanosecond: a run too short for the clock would make the mean zero.
        sum += value.max(1e-9).ln();
        count += 1;
    }
    (0 < count).then(|| (sum / f64::from(count)).exp())
}
