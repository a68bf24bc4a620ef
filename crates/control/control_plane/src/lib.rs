//! Who is asked about clusters, and told to change them: the one thing about them that differs between a laptop, a machine and Kubernetes.
//!
//! A control plane owns the desired state, observes the workers and makes the one true of the other by what `cluster_model` decides. Never
//! starts a thread, a process or a pod itself, and never runs a statement.
//!
//! Start at [`ControlPlane`] for what a session sees of it and [`WorkerHost`] for what workers are made by; `local.rs` is the control plane of
//! one machine, `conformance.rs` what each must fulfil, `guests.rs` workers that are made elsewhere.

#[doc(hidden)]
pub mod conformance;
mod guests;
mod known;
mod local;
mod observed;
pub mod revisions;

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

use cluster_model::desired::{Author, Change, ClusterId, DesiredState, Error, Inventory};
use cluster_model::events::ClusterEvent;
use cluster_model::reconcile::Action;
use cluster_model::serving::Phase;
use cluster_model::worker::{Worker, WorkerId, WorkerSpec};
use cluster_model::{Activity, StopReason};
use types::Condition;

pub use guests::{Guests, Vouch, Vouched, Vouching};
pub use known::Known;
pub use local::{LocalControlPlane, StateStore, go_on};
pub use revisions::Revisions;

/// What is asked about clusters and what changes them. Questions are answered from memory and never wait.
pub trait ControlPlane: Send + Sync + fmt::Debug {
    /// Makes a change durable, and says what happened; nothing where everything was so before. The workers follow later: whoever wants to
    /// see them waits for [`ControlPlane::revisions`].
    ///
    /// May wait for a disk or another server: not to be called where that is not allowed.
    ///
    /// # Errors
    /// The change is refused or cannot be kept, and has not been made.
    fn apply(&self, change: &Change, author: &Author) -> Result<Vec<ClusterEvent>, PlaneError>;

    /// What clusters can be made of here, now.
    fn inventory(&self) -> Arc<Inventory>;

    /// What has been made durable and observed, of which the questions below are answered.
    fn known(&self) -> &Known;

    /// What should be.
    fn desired(&self) -> Arc<DesiredState> {
        self.known().desired()
    }

    /// All workers as they were last observed, with those that have gone lately.
    fn workers(&self) -> Arc<[Worker]> {
        self.known().workers()
    }

    /// The workers that a new statement on the cluster is given to, by slot; see [`cluster_model::serving::serving`]. Cheap enough for each
    /// statement.
    fn serving(&self, cluster: ClusterId) -> Arc<[Worker]> {
        self.known().serving(cluster)
    }

    /// How far the cluster is on its way to what it should be; `None` where it does not exist.
    fn phase(&self, cluster: ClusterId) -> Option<Phase> {
        self.known().phase(cluster)
    }

    /// What happened to clusters and workers, oldest first, as far back as it is kept.
    fn events(&self) -> Vec<ClusterEvent> {
        self.known().events()
    }

    /// Grows when something that can be asked here is different: the desired state, or who the workers are and what state they are in.
    fn revisions(&self) -> &Revisions {
        self.known().revisions()
    }

    /// Lets clusters that were idle for long fall asleep, looks at the workers and does what makes them what they should be. Returns what
    /// was done; nothing where all was well. Whoever owns the control plane calls it about once a second, and when its revisions grow.
    ///
    /// May wait, as [`ControlPlane::apply`] may.
    fn pass(&self, activity: &BTreeMap<ClusterId, Activity>) -> Vec<Action>;
}

/// What workers of one kind of hardware are made by: threads of the process, child processes. Nothing here waits; what an action comes
/// to is seen by [`WorkerHost::observe`].
///
/// All actions may be repeated, and come to nothing for a worker that is not there or that they have been done to.
pub trait WorkerHost: Send + Sync + fmt::Debug {
    /// Starts a worker under an id that no other ever had. It is observed from now on: as starting, or as gone where it cannot be started.
    fn start(&self, worker: &StartWorker);

    /// Tells a worker what it has now.
    fn configure(&self, worker: WorkerId, spec: &WorkerSpec);

    /// Lets a worker end what it does. It is observed as draining from now on.
    fn drain(&self, worker: WorkerId);

    /// Observes a worker as hung from now on, until it answers again.
    fn mark_hung(&self, worker: WorkerId);

    /// Ends a worker, with all that runs on it. It is observed as gone as soon as it is; as failed where the reason is a failure.
    fn stop(&self, worker: WorkerId, reason: StopReason);

    /// Observes a worker that is gone no longer.
    fn forget(&self, worker: WorkerId);

    /// All workers that were started here, or found by a new instance, and not forgotten.
    fn observe(&self) -> Vec<Worker>;
}

/// A worker that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartWorker {
    pub cluster: ClusterId,
    pub slot: u32,
    pub spec: WorkerSpec,
}

/// Why a control plane did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    #[error(transparent)]
    Refused(#[from] Error),
    /// The desired state cannot be read or kept.
    #[error("could not {action} the desired clusters")]
    Store { action: &'static str, source: std::io::Error },
    /// Who keeps the clusters does not answer, or does not take the change.
    #[error("could not have the clusters changed where they are kept")]
    Keeper(#[source] Box<dyn StdError + Send + Sync>),
    /// What was kept is not what was written.
    #[error(transparent)]
    Stored(#[from] cluster_model::desired::stored::StoredError),
}

impl PlaneError {
    /// What a client is told that it is.
    #[must_use]
    pub fn condition(&self) -> Condition {
        match self {
            Self::Refused(error) => error.condition(),
            Self::Store { .. } | Self::Keeper(_) => Condition::IoError,
            Self::Stored(_) => Condition::DataCorrupted,
        }
    }
}
