//! Admission to a cluster: the turn and the worker that an open statement holds.

use std::sync::{Arc, Weak};

use cluster_model::ClusterId;
use scheduler::Lease;
use workload::Permit;

/// A statement that may run: what it holds until its last row is made.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub(crate) turn: Arc<Turn>,
    pub(crate) lease: Arc<Lease>,
}

/// The place of a session's statements on a cluster. Those that are open at the same time share one: a session that waits for itself
/// would wait for ever.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) cluster: ClusterId,
    /// `None` for one that could not wait.
    #[expect(dead_code, reason = "it is held, not read")]
    pub(crate) permit: Option<Permit>,
}

/// The turn of a session none of whose statements is open.
pub(crate) fn no_turn() -> Weak<Turn> {
    Weak::new()
}
