//! Kiln's way into a Kubernetes namespace and out of it: `kiln install kubernetes` and `kiln uninstall kubernetes`.
//!
//! `manifests.rs` is what is applied, `apply.rs` applies it and waits until the first instance takes queries, `remove.rs` takes it away again and
//! leaves the data.

mod apply;
mod manifests;
mod remove;

use std::time::Duration;

use crate::resources::Instance;

pub use apply::install;
pub use remove::{Remove, uninstall};

/// Takes what an installation tells of itself.
type ProgressSink<'a> = Box<dyn FnMut(&Progress) + Send + 'a>;

/// The operator's name, that of its service account and of its role.
pub const OPERATOR: &str = "kiln-operator";
/// The variable in which the operator finds its own name.
pub const IDENTITY_VARIABLE: &str = "KILN_OPERATOR_IDENTITY";
/// The variable in which the operator finds its namespace.
pub const NAMESPACE_VARIABLE: &str = "KILN_OPERATOR_NAMESPACE";
/// Whose fields they are that an installation applies.
pub const FIELD_MANAGER: &str = "kiln-install";

/// What is to be installed.
#[derive(Debug, Clone, PartialEq)]
pub struct Install {
    pub namespace: String,
    /// With the program `kiln`.
    pub image: String,
    /// The first instance, where there is to be one.
    pub instance: Option<Instance>,
}

/// What happens meanwhile, for people to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The object is as it should be.
    Applied { kind: String, name: String },
    /// What the instance says of itself is something else than before.
    Instance { name: String, says: String },
    /// The object has been told to go.
    Deleting { kind: String, name: String },
    /// The object was left where it is, for this reason.
    Kept { kind: String, name: String, why: &'static str },
}

/// Why Kiln is not there, or not gone.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("could not apply the {kind} {name}")]
    Apply { kind: String, name: String, source: Box<kube::Error> },
    #[error("could not delete the {kind} {name}")]
    Delete { kind: String, name: String, source: Box<kube::Error> },
    #[error("could not look for what is there")]
    Look(#[source] Box<kube::Error>),
    #[error("could not wait for the {kind} {name}")]
    Wait { kind: &'static str, name: String, source: Box<kube::runtime::wait::Error> },
    /// It may come to be later: nothing was taken back.
    #[error("{what} is not there after {} seconds: {says}", after.as_secs())]
    Late { what: String, after: Duration, says: String },
    /// It may go later: nothing was taken back.
    #[error("the instance {name} has not gone after {} seconds; its operator lets it go when its pod has ended", after.as_secs())]
    Stays { name: String, after: Duration },
    /// Definitions go with all that is of them.
    #[error("definitions are not removed: there are instances in the namespaces {}", namespaces.join(", "))]
    StillUsed { namespaces: Vec<String> },
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Applied { kind, name } => write!(f, "applied {kind} {name}"),
            Self::Instance { name, says } => write!(f, "instance {name}: {says}"),
            Self::Deleting { kind, name } => write!(f, "deleting {kind} {name}"),
            Self::Kept { kind, name, why } => write!(f, "kept {kind} {name}: {why}"),
        }
    }
}
