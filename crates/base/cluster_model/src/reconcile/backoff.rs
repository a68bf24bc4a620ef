//! When a slot whose workers failed is tried again: after each failure twice as long as before, up to a limit.

use std::time::Duration;

use super::Settings;

/// Failures of a slot that are worth knowing: so many make it wait as long as it ever does.
pub(super) fn failures_kept(settings: &Settings) -> usize {
    let mut kept = 1;
    while wait(kept, settings) < settings.backoff_max && kept < 64 {
        kept += 1;
    }
    kept
}

/// How long after the last of so many failures in a row a slot waits.
pub(super) fn wait(failures: usize, settings: &Settings) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let factor = u32::try_from(doublings).ok().and_then(|doublings| 1_u32.checked_shl(doublings)).unwrap_or(u32::MAX);
    settings.backoff_first.saturating_mul(factor).min(settings.backoff_max)
}
