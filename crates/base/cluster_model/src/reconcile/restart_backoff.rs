//! Exponential backoff of a slot whose workers failed.

use std::time::Duration;

use super::ReconcileSettings;

/// Returns the number of failures with which the backoff reaches its maximum; older failures need not be remembered.
pub(super) fn remembered_failures_max(settings: &ReconcileSettings) -> usize {
    let mut kept = 1;
    while restart_delay(kept, settings) < settings.backoff_max && kept < 64 {
        kept += 1;
    }
    kept
}

/// Returns the pause of a slot after the last of `failures` consecutive failures.
pub(super) fn restart_delay(failures: usize, settings: &ReconcileSettings) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let factor = u32::try_from(doublings).ok().and_then(|doublings| 1_u32.checked_shl(doublings)).unwrap_or(u32::MAX);
    settings.backoff_initial.saturating_mul(factor).min(settings.backoff_max)
}
