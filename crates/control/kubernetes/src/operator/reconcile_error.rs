//! Errors of the reconciliation of an Instance or a ComputeCluster.

use kube::runtime::reflector::store::WriterDropped;

use crate::compute_cluster::UnmetDependency;
use crate::credentials::SecretError;
use crate::instance::InvalidInstance;

/// Reason why a reconciliation failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Invalid(#[from] InvalidInstance),
    #[error(transparent)]
    UnmetDependency(#[from] UnmetDependency),
    /// An object of that name belongs to another owner, possibly to a deleted one of the same name; it is then
    /// garbage-collected soon.
    #[error("the {kind} {name} exists already and does not belong to this {owner}")]
    NameConflict { kind: String, name: String, owner: &'static str },
    /// The user has to provide this secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("could not create a private key or a TLS certificate")]
    Certificate(#[from] rcgen::Error),
    /// The watch of a cache was dropped because the operator is ending.
    #[error("the watch that fills a cache of Kubernetes objects has ended")]
    WatchEnded(#[from] WriterDropped),
    #[error("{}", api_message(.0))]
    Api(#[from] kube::Error),
}

/// Returns the API server's message. The `Display` text of the error would add the whole response in debug format.
fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
