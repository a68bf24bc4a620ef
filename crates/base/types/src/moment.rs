//! Points in the past of a warehouse.

use crate::CommitTs;

/// A moment whose committed state can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// As late as can be.
    Newest,
    /// Microseconds since 1970: all that was committed until then.
    Time(i64),
    /// What is seen by who sees this commit and none after it.
    Commit(CommitTs),
}
