//! Why an instance is not what it should be.

use crate::instance::Invalid;

/// Why a look at an instance failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It may be an earlier instance's of the same name, and go in a moment.
    #[error("the {kind} {name} is there already and is not this instance's")]
    Taken { kind: String, name: String },
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
