//! Control plane interface: the part of cluster management that differs between a single machine and Kubernetes.
//!
//! A control plane owns the desired state, observes the workers, and reconciles them as `cluster_model` decides. It
//! starts threads, processes and pods only through worker hosts, and never runs statements.
//!
//! - `lib.rs`: the traits [`ControlPlane`] for sessions and [`WorkerHost`] for starting workers
//! - `token_workers.rs`: workers that the instance has not started
//! - `cached_state.rs`, `worker_events.rs`: last known state, and the events between two observations
//! - `revision_counter.rs`: a change counter to wait on
//! - `local_control_plane.rs`: the control plane of one machine
//! - `conformance_tests.rs`: tests that every control plane must pass

mod cached_state;
#[doc(hidden)]
pub mod conformance_tests;
mod local_control_plane;
pub mod revision_counter;
mod token_workers;
mod worker_events;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod reconcile_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use cluster_model::cluster_events::ClusterEvent;
use cluster_model::desired_state::{Author, Change, ClusterId, DesiredState, Error, Inventory};
use cluster_model::reconcile::Action;
use cluster_model::serving_workers::ClusterPhase;
use cluster_model::worker::{Worker, WorkerId, WorkerSpec};
use cluster_model::{ClusterActivity, StopReason};
use types::Condition;

pub use cached_state::CachedState;
pub use local_control_plane::{LocalControlPlane, StateStore, load_or_create};
pub use revision_counter::Revisions;
pub use token_workers::{TokenVerifier, TokenWorkerHost, VerifiedWorker, VerifyFuture};

/// Interface to clusters: reads and changes the desired state, and reconciles the workers. Reads are answered from
/// memory and never block.
pub trait ControlPlane: Send + Sync + fmt::Debug {
    /// Applies a change durably and returns its events; none if it has no effect. The workers follow later, which
    /// [`ControlPlane::revisions`] reports.
    ///
    /// May block on a disk or another server.
    ///
    /// # Errors
    /// The change is refused or cannot be stored; it is not applied then.
    fn apply(&self, change: &Change, author: &Author) -> Result<Vec<ClusterEvent>, ControlPlaneError>;

    /// Returns the hardware and profiles that are available now.
    fn inventory(&self) -> Arc<Inventory>;

    /// Returns the last known state, from which the following methods answer.
    fn cached_state(&self) -> &CachedState;

    /// Returns the desired state.
    fn desired(&self) -> Arc<DesiredState> {
        self.cached_state().desired()
    }

    /// Returns all workers as last observed, including those that have ended lately.
    fn workers(&self) -> Arc<[Worker]> {
        self.cached_state().workers()
    }

    /// Returns the workers that a new statement on the cluster runs on, by slot; see
    /// [`cluster_model::serving_workers::serving_workers`]. Cheap enough to call for each statement.
    fn serving(&self, cluster: ClusterId) -> Arc<[Worker]> {
        self.cached_state().serving(cluster)
    }

    /// Returns the phase of the cluster; `None` if it does not exist.
    fn phase(&self, cluster: ClusterId) -> Option<ClusterPhase> {
        self.cached_state().phase(cluster)
    }

    /// Returns the events of clusters and workers in the histories, oldest first.
    fn events(&self) -> Vec<ClusterEvent> {
        self.cached_state().events()
    }

    /// Returns a counter that grows with each change of the desired state, the set of workers or their states.
    fn revisions(&self) -> &Revisions {
        self.cached_state().revisions()
    }

    /// Runs one reconciliation pass: suspends idle clusters, observes the workers and acts on them. Returns the
    /// actions; none if the workers match the desired state. The owner calls it about once a second and when its
    /// revisions grow.
    ///
    /// May block, like [`ControlPlane::apply`].
    fn reconcile(&self, activity: &BTreeMap<ClusterId, ClusterActivity>) -> Vec<Action>;
}

/// Host that starts and stops the workers of one kind of hardware, such as threads or child processes. No method
/// blocks; the effect of an action shows in [`WorkerHost::observe`].
///
/// All actions are idempotent, and have no effect on an unknown worker.
pub trait WorkerHost: Send + Sync + fmt::Debug {
    /// Starts a worker with a new id. It is observed from now on: as starting, or as gone if it cannot be started.
    fn start(&self, worker: &StartRequest);

    /// Applies a new specification to a worker.
    fn configure(&self, worker: WorkerId, spec: &WorkerSpec);

    /// Starts draining a worker, which is observed as draining from now on.
    fn drain(&self, worker: WorkerId);

    /// Marks a worker as hung until it answers again.
    fn mark_hung(&self, worker: WorkerId);

    /// Stops a worker, with all statements that run on it. It is observed as gone once it has ended, and as failed if
    /// the reason is a failure.
    fn stop(&self, worker: WorkerId, reason: StopReason);

    /// Removes an ended worker from the observed ones.
    fn forget(&self, worker: WorkerId);

    /// Returns all workers that were started here or taken over from an earlier instance, and not forgotten.
    fn observe(&self) -> Vec<Worker>;
}

/// Request to start a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRequest {
    pub cluster: ClusterId,
    pub slot: u32,
    pub spec: WorkerSpec,
}

/// Failure of a control plane.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    #[error(transparent)]
    Refused(#[from] Error),
    /// The desired state cannot be read from or written to its store.
    #[error("could not {action} the desired state of the clusters")]
    Store { action: &'static str, source: std::io::Error },
    /// The external store of clusters, such as the Kubernetes API server, does not answer or rejects the change.
    #[error("could not change the clusters in their external store")]
    ExternalStore(#[source] Box<dyn StdError + Send + Sync>),
    /// The stored desired state is damaged or has an unknown format.
    #[error(transparent)]
    DamagedState(#[from] cluster_model::desired_state::stored_encoding::StoredError),
}

impl ControlPlaneError {
    /// Returns the condition, and thereby the SQLSTATE, that clients get.
    #[must_use]
    pub fn condition(&self) -> Condition {
        match self {
            Self::Refused(error) => error.condition(),
            Self::Store { .. } | Self::ExternalStore(_) => Condition::IoError,
            Self::DamagedState(_) => Condition::DataCorrupted,
        }
    }
}
