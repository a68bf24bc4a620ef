//! Targets of time travel.

use crate::CommitTs;

/// Historical state of a warehouse, as selected by AS OF and `kiln restore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeTravelTarget {
    /// The newest committed state.
    Newest,
    /// The state at a time, in microseconds since 1970: all commits up to then.
    Time(i64),
    /// The state after a commit: this commit and all before it.
    Commit(CommitTs),
}
