//! Retries of failed requests with exponential backoff.

use std::time::Duration;

use types::{Clock, Random};

use crate::Result;

/// Maximum number of attempts, including the first.
const ATTEMPT_COUNT_MAX: u32 = 5;

/// Wait before the second attempt; it triples with each further attempt.
const BACKOFF: Duration = Duration::from_millis(50);

/// Repeats `request` while it fails with a transient error, up to [`ATTEMPT_COUNT_MAX`] times; returns its last result.
///
/// Only for idempotent requests. The `object_store` clients retry single requests themselves, but not truncated bodies,
/// and not every storage has such a client.
pub(crate) async fn retry_transient<T, F: Future<Output = Result<T>>>(
    clock: &dyn Clock,
    random: &dyn Random,
    mut request: impl FnMut() -> F,
) -> Result<T> {
    let mut attempt = 1;
    loop {
        match request().await {
            Err(error) if error.is_transient() && attempt < ATTEMPT_COUNT_MAX => {
                tracing::warn!(
                    attempt,
                    error = &error as &dyn std::error::Error,
                    "object storage request failed; retrying"
                );
                clock.sleep(backoff_after(attempt, random.next_u64())).await;
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Returns the wait after `attempt`: a random time between half and all of its backoff, so that clients do not retry in
/// step. `chance` is any random number.
fn backoff_after(attempt: u32, random: u64) -> Duration {
    let longest = BACKOFF * 3_u32.pow(attempt - 1);
    longest / 2 + longest.mul_f64((random % 1_000) as f64 / 2_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_their_bounds() {
        for chance in [0, 1, 999, u64::MAX] {
            assert!((25..=50).contains(&backoff_after(1, chance).as_millis()));
            assert!((675..=1_350).contains(&backoff_after(4, chance).as_millis()));
        }
    }
}
