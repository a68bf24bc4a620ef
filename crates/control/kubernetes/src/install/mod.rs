//! Installation of Kiln in a Kubernetes namespace and its removal: `kiln install kubernetes`, `kiln uninstall
//! kubernetes`.
//!
//! - `manifests.rs`: the objects of an installation.
//! - `apply_manifests.rs`: applies them and waits until the first instance accepts queries.
//! - `uninstall.rs`: removes them and keeps the data.

mod apply_manifests;
mod manifests;
mod uninstall;

use std::time::Duration;

use crate::resources::Instance;

pub use apply_manifests::install;
pub use uninstall::{Removal, uninstall};

/// Callback that receives the progress of an installation or a removal.
type ProgressSink<'a> = Box<dyn FnMut(&InstallProgress) + Send + 'a>;

/// Name of the operator's deployment, service account, role and role binding.
pub const OPERATOR: &str = "kiln-operator";
/// Environment variable with the operator's identity.
pub const IDENTITY_VARIABLE: &str = "KILN_OPERATOR_IDENTITY";
/// Environment variable with the operator's namespace.
pub const NAMESPACE_VARIABLE: &str = "KILN_OPERATOR_NAMESPACE";
/// Field manager of an installation's server-side apply.
pub const FIELD_MANAGER: &str = "kiln-install";

/// Parameters of an installation.
#[derive(Debug, Clone, PartialEq)]
pub struct Installation {
    pub namespace: String,
    /// Container image with the program `kiln`.
    pub image: String,
    /// First instance, or `None` to install only the operator.
    pub instance: Option<Instance>,
}

/// Progress of an installation or a removal, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallProgress {
    /// The object was applied.
    Applied { kind: String, name: String },
    /// The status of the instance has changed.
    InstanceStatus { name: String, status: String },
    /// The deletion of the object was requested.
    Deleting { kind: String, name: String },
    /// The object was not deleted, for this reason.
    Retained { kind: String, name: String, reason: &'static str },
}

/// Failure of an installation or a removal.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("could not apply the {kind} {name}")]
    Apply { kind: String, name: String, source: Box<kube::Error> },
    #[error("could not delete the {kind} {name}")]
    Delete { kind: String, name: String, source: Box<kube::Error> },
    #[error("could not list the Kubernetes objects of the installation")]
    List(#[source] Box<kube::Error>),
    #[error("could not wait for the {kind} {name}")]
    Wait { kind: &'static str, name: String, source: Box<kube::runtime::wait::Error> },
    /// The object may still become ready later: nothing was rolled back.
    #[error("{object} is not ready after {} seconds: {status}", timeout.as_secs())]
    NotReadyInTime { object: String, timeout: Duration, status: String },
    /// The instance may still be deleted later: nothing was rolled back.
    #[error(
        "the instance {name} still exists after {} seconds; the operator lets it be deleted when its pod has ended",
        after.as_secs()
    )]
    NotDeletedInTime { name: String, after: Duration },
    /// Deleting a CustomResourceDefinition deletes all its objects, in every namespace.
    #[error(
        "the CustomResourceDefinitions are not removed: there are instances in the namespaces {}",
        namespaces.join(", ")
    )]
    DefinitionsInUse { namespaces: Vec<String> },
}

impl std::fmt::Display for InstallProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Applied { kind, name } => write!(f, "applied {kind} {name}"),
            Self::InstanceStatus { name, status } => write!(f, "instance {name}: {status}"),
            Self::Deleting { kind, name } => write!(f, "deleting {kind} {name}"),
            Self::Retained { kind, name, reason } => write!(f, "kept {kind} {name}: {reason}"),
        }
    }
}
