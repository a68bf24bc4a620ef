//! Why a lock was not taken.

use super::{Resource, WaitsFor};

/// Why a lock was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Another transaction has it, and the caller would not wait.
    #[error("could not obtain lock")]
    NotAvailable { resource: Resource },
    /// Another transaction has had it for longer than the caller would wait.
    #[error("lock timeout")]
    Timeout { resource: Resource },
    /// Waiting would never end. The first of the circle is the caller, and the last waits for it.
    #[error("deadlock detected")]
    Deadlock { circle: Vec<WaitsFor> },
}
