//! Limits spilling to the free disk space beyond the reserve.

use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::disk_manager::DiskManager;
use types::{Clock, DiskReserve, ServiceHealth};

/// Interval of checks of the disk.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Returns the maximum bytes in the spill folder, which has `used` bytes now.
fn spill_limit(used: u64, free: u64, kept: u64, most: u64) -> u64 {
    used.saturating_add(free.saturating_sub(kept)).min(most)
}

/// While it is polled, limits spilling so that the disk's reserve stays free and at most `most` bytes are spilled.
/// Operators that need more fail with 53100.
pub async fn enforce_spill_limit(
    spilled: &Arc<DiskManager>,
    reserve: &DiskReserve,
    most: impl Fn() -> u64,
    clock: &Arc<dyn Clock>,
    health: &ServiceHealth,
) {
    loop {
        match reserve.disk.free_bytes() {
            Ok(free) => {
                let limit = spill_limit(spilled.used_disk_space(), free, reserve.bytes, most());
                match spilled.set_max_temp_directory_size(limit) {
                    Ok(()) => health.report_success(),
                    Err(error) => report_failure(health, error.to_string()),
                }
            }
            Err(error) => report_failure(health, error.to_string()),
        }
        clock.sleep(CHECK_INTERVAL).await;
    }
}

/// Reports a failure, and logs it if it is a new one.
fn report_failure(health: &ServiceHealth, reason: String) {
    if health.last_failure().as_ref() != Some(&reason) {
        tracing::warn!(reason, "could not set the limit for temporary files; retrying");
    }
    health.report_failure(reason);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spilled_and_what_is_free_count_but_for_the_reserve() {
        assert_eq!(spill_limit(10, 100, 30, 1_000), 80);
        assert_eq!(spill_limit(10, 20, 30, 1_000), 10, "nothing more");
        assert_eq!(spill_limit(10, 100, 30, 50), 50);
        assert_eq!(spill_limit(u64::MAX, 100, 30, u64::MAX), u64::MAX);
    }
}
