//! Cluster slot and worker lease that an open statement holds.

use std::sync::{Arc, Weak};

use cluster_model::ClusterId;
use scheduler::Lease;
use workload::Permit;

/// Resources of an admitted statement, held until its last row is computed.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionGrant {
    pub(crate) slot: Arc<ClusterSlot>,
    pub(crate) lease: Arc<Lease>,
}

/// Slot of a session on a cluster. All statements that the session has open share it: if each waited for a slot of its
/// own, a session could wait for itself for ever.
#[derive(Debug)]
pub(crate) struct ClusterSlot {
    pub(crate) cluster: ClusterId,
    /// Permit of the cluster's admission queue; `None` for a statement that could not wait because its transaction
    /// holds locks.
    #[expect(dead_code, reason = "it is held, not read")]
    pub(crate) permit: Option<Permit>,
}

/// Returns the empty reference of a session without open statements.
pub(crate) fn no_slot() -> Weak<ClusterSlot> {
    Weak::new()
}
