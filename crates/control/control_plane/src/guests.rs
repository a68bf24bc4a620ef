//! Workers that are made elsewhere: they come by themselves, and somebody says who they are.

use std::fmt;
use std::pin::Pin;

use cluster_model::desired::ClusterId;
use cluster_model::worker::{WorkerId, WorkerSpec};

use super::WorkerHost;

/// A host of workers that it does not start: who comes is vouched for. It ends them as any other does, by telling them.
///
/// What a worker lives in has a name of its own that nothing else ever has, as the uid of a pod. One life may have several workers one after the other,
/// where its process was started again.
pub trait Guests: WorkerHost {
    /// The life of a worker; `None` where it has none, or there is no such worker.
    fn life(&self, worker: WorkerId) -> Option<String>;

    /// Observes a worker as gone from now on, because what it lived in is gone; as failed where it was not told to go.
    fn lost(&self, worker: WorkerId, how: &str);
}

/// Who says who somebody is that shows a token.
pub trait Vouch: Send + Sync + fmt::Debug {
    /// Whose token it is, or why that one is no worker of this instance.
    fn vouch<'a>(&'a self, token: &'a str) -> Vouching<'a>;
}

/// What [`Vouch::vouch`] waits for.
pub type Vouching<'a> = Pin<Box<dyn Future<Output = Result<Vouched, String>> + Send + 'a>>;

/// Whose place somebody takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vouched {
    pub cluster: ClusterId,
    pub slot: u32,
    pub spec: WorkerSpec,
    pub life: String,
}
