//! Workers that the instance has not started, such as pods: they join with a token that is verified.

use std::fmt;
use std::pin::Pin;

use cluster_model::desired_state::ClusterId;
use cluster_model::worker::{WorkerId, WorkerSpec};

use super::WorkerHost;

/// Host of workers that it does not start itself, but stops by a message like any other.
///
/// The *life* of a worker is the unique name of what it runs in, such as the uid of a pod. One life can have several
/// workers one after the other, if its process is restarted.
pub trait TokenWorkerHost: WorkerHost {
    /// Returns the life of a worker; `None` if it has none or does not exist.
    fn host_uid(&self, worker: WorkerId) -> Option<String>;

    /// Marks a worker as gone because its life has ended; as failed if it was not told to stop.
    fn mark_lost(&self, worker: WorkerId, how: &str);
}

/// Verifier of worker tokens.
pub trait TokenVerifier: Send + Sync + fmt::Debug {
    /// Verifies a token and returns the assignment of its worker, or the reason why it belongs to no worker of this
    /// instance.
    fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a>;
}

/// Future of [`TokenVerifier::verify`].
pub type VerifyFuture<'a> = Pin<Box<dyn Future<Output = Result<VerifiedWorker, String>> + Send + 'a>>;

/// Assignment of a worker with a verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedWorker {
    pub cluster: ClusterId,
    pub slot: u32,
    pub spec: WorkerSpec,
    /// Unique name of what the worker runs in; see [`TokenWorkerHost`].
    pub host_uid: String,
}
