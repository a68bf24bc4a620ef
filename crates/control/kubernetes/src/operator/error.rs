//! Why an instance, or a cluster, is not what it should be.

use kube::runtime::reflector::store::WriterDropped;

use crate::compute::Impossible;
use crate::credentials::Unusable;
use crate::instance::Invalid;

/// Why a look at one failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Impossible(#[from] Impossible),
    /// It may be an earlier one's of the same name, and go in a moment.
    #[error("the {kind} {name} is there already and is not this {owner}'s")]
    Taken { kind: String, name: String, owner: &'static str },
    /// Whoever wants the instance makes it.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    #[error("a key or a certificate could not be made")]
    Certificate(#[from] rcgen::Error),
    /// The operator ends.
    #[error("what there is, is not watched any more")]
    Unwatched(#[from] WriterDropped),
    #[error("{}", said(.0))]
    Api(#[from] kube::Error),
}

/// Without the whole answer in Rust's words, which the error's own text has.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
