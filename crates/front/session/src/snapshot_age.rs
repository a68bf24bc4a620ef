//! The age of snapshots, and the error of one that is too old.

use std::time::Duration;

use types::{Condition, SqlError};

pub(crate) fn age(looked_us: i64, now_us: i64) -> Duration {
    Duration::from_micros(u64::try_from(now_us.saturating_sub(looked_us)).unwrap_or(0))
}

/// `72000`.
pub(crate) fn too_old() -> SqlError {
    SqlError::new(Condition::SnapshotTooOld, "snapshot too old")
        .with_detail("What it reads was committed longer ago than \"max_snapshot_age\" allows.")
        .with_hint("Run it again, or set \"max_snapshot_age\" higher.")
}
