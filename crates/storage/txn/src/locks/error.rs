//! Errors of lock requests.

use super::{Resource, WaitEdge};

/// Failure to acquire a lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Blocked by another transaction, with [`super::LockWait::NoWait`].
    #[error("could not obtain lock")]
    NotAvailable { resource: Resource },
    /// Blocked by another transaction for longer than the timeout.
    #[error("lock timeout")]
    Timeout { resource: Resource },
    /// A wait that would never end. The first step of the cycle is the caller's, and the last one's blocker is the
    /// caller.
    #[error("deadlock detected")]
    Deadlock { cycle: Vec<WaitEdge> },
}
