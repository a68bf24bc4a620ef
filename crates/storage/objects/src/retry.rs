//! How often and how soon a failed request is made again.

use std::time::Duration;

use types::{Clock, Random};

use crate::Result;

/// Requests made at most, the first one included.
const ATTEMPT_COUNT_MAX: u32 = 5;

/// Wait before the second request; each further wait is three times as long.
const BACKOFF: Duration = Duration::from_millis(50);

/// Makes a request until it succeeds, fails for good, or has been tried often enough; then its last error.
///
/// Only for requests that may take effect twice. The client below has its own, shorter patience with single answers; this one
/// also covers bodies cut short and every storage that has none.
pub(crate) async fn retry<T, F: Future<Output = Result<T>>>(
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
                    "a storage request failed, trying again"
                );
                clock.sleep(wait(attempt, random.next_u64())).await;
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Between half and all of the backoff of this attempt, so that many clients do not come back together.
fn wait(attempt: u32, chance: u64) -> Duration {
    let longest = BACKOFF * 3_u32.pow(attempt - 1);
    longest / 2 + longest.mul_f64((chance % 1_000) as f64 / 2_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_their_bounds() {
        for chance in [0, 1, 999, u64::MAX] {
            assert!((25..=50).contains(&wait(1, chance).as_millis()));
            assert!((675..=1_350).contains(&wait(4, chance).as_millis()));
        }
    }
}
