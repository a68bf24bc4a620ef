//! Age of snapshots, and the error of a snapshot that is too old.

use std::time::Duration;

use types::{Condition, SqlError};

/// Returns the age at `now_us` of a snapshot taken at `snapshot_us`.
pub(crate) fn snapshot_age(snapshot_us: i64, now_us: i64) -> Duration {
    Duration::from_micros(u64::try_from(now_us.saturating_sub(snapshot_us)).unwrap_or(0))
}

/// Returns the error of a snapshot older than `max_snapshot_age` (`72000`).
pub(crate) fn snapshot_too_old() -> SqlError {
    SqlError::new(Condition::SnapshotTooOld, "snapshot too old")
        .with_detail("The snapshot of the statement or cursor is older than \"max_snapshot_age\" allows.")
        .with_hint("Run the statement again, or set \"max_snapshot_age\" higher.")
}
