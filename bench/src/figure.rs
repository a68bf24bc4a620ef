//! The one figure of a run, as UnixBench makes it.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// Drops the slowest third of the runs and gives the geometric mean of the rest; `None` without runs.
#[must_use]
pub fn figure(runs: &[Duration]) -> Option<Duration> {
    let mut runs = runs.to_vec();
    runs.sort();
    let kept = runs.len() - runs.len() / 3;
    geometric_mean(runs.get(..kept)?.iter().map(Duration::as_secs_f64)).map(Duration::from_secs_f64)
}

/// Geometric mean; `None` without values.
pub fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        // A nanosecond keeps a run too short for the clock from making the mean zero.
        sum += value.max(1e-9).ln();
        count += 1;
    }
    (0 < count).then(|| (sum / f64::from(count)).exp())
}
