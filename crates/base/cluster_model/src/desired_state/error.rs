//! Reasons for refusing a change of the desired state.

use types::{Condition, Oid};

/// Result of looking up or changing clusters.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason for refusing a change: an invalid request or a missing privilege.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("cluster \"{name}\" does not exist")]
    UndefinedCluster { name: String },
    #[error("cluster \"{name}\" already exists")]
    DuplicateCluster { name: String },
    #[error("hardware instance \"{name}\" does not exist")]
    UndefinedHardware { name: String, available: Vec<String> },
    #[error("WLM profile \"{name}\" does not exist")]
    UndefinedProfile { name: String, available: Vec<String> },
    /// Option out of range, in PostgreSQL's words for settings.
    #[error("{value} is outside the valid range for parameter \"{option}\" ({min} .. {max})")]
    OutOfRange { option: &'static str, value: i64, min: i64, max: i64 },
    #[error("clusters can have at most {max} workers together, they would have {workers}")]
    TooManyWorkers { workers: u32, max: u32 },
    #[error("invalid cluster name \"{name}\": it is empty or contains a NUL byte")]
    InvalidName { name: String },
    #[error("the cluster name \"{name}\" is longer than {max} bytes")]
    NameTooLong { name: String, max: usize },
    #[error("cannot drop cluster \"{name}\" because it is required by the database system")]
    CannotDrop { name: String },
    #[error("cannot rename cluster \"{name}\" because it is required by the database system")]
    CannotRename { name: String },
    /// Suspended cluster without AUTO_RESUME that a statement needs.
    #[error("cluster \"{name}\" is suspended")]
    Suspended { name: String },
    #[error("must be owner of cluster {name}")]
    NotOwner { name: String },
    #[error("permission denied for cluster {name}")]
    NoPrivilege { name: String },
    #[error("permission denied to create cluster")]
    NoCreatePrivilege,
    #[error("permission denied to change the clusters of role \"{role}\"")]
    NoAlterRolePrivilege { role: String },
    /// Dropped role that still owns clusters.
    #[error("role with id {role} cannot be dropped because it owns clusters")]
    OwnsClusters { role: Oid, clusters: Vec<String> },
}

impl Error {
    /// Returns the condition, and thereby the SQLSTATE, that clients get.
    #[must_use]
    pub fn condition(&self) -> Condition {
        match self {
            Self::UndefinedCluster { .. } | Self::UndefinedHardware { .. } | Self::UndefinedProfile { .. } => {
                Condition::UndefinedObject
            }
            Self::DuplicateCluster { .. } => Condition::DuplicateObject,
            Self::OutOfRange { .. } => Condition::InvalidParameterValue,
            Self::TooManyWorkers { .. } => Condition::ConfigurationLimitExceeded,
            Self::InvalidName { .. } => Condition::InvalidName,
            Self::NameTooLong { .. } => Condition::NameTooLong,
            Self::CannotDrop { .. } | Self::OwnsClusters { .. } => Condition::DependentObjectsStillExist,
            Self::CannotRename { .. } => Condition::ObjectInUse,
            Self::Suspended { .. } => Condition::ObjectNotInPrerequisiteState,
            Self::NotOwner { .. }
            | Self::NoPrivilege { .. }
            | Self::NoCreatePrivilege
            | Self::NoAlterRolePrivilege { .. } => Condition::InsufficientPrivilege,
        }
    }

    /// Returns the hint for clients, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UndefinedHardware { available, .. } => Some(format!("There are: {}.", available.join(", "))),
            Self::UndefinedProfile { available, .. } => Some(format!("There are: {}.", available.join(", "))),
            Self::OutOfRange { option: "NODE_COUNT", value: 0, .. } => {
                Some("A cluster has no workers while it is suspended: ALTER CLUSTER … SUSPEND.".to_owned())
            }
            Self::OutOfRange { option: "AUTO_SUSPEND", .. } => {
                Some("AUTO_SUSPEND = NULL keeps a cluster awake.".to_owned())
            }
            Self::TooManyWorkers { .. } => {
                Some("Workers of suspended clusters count, because waking one is never refused.".to_owned())
            }
            Self::Suspended { name } => Some(format!("ALTER CLUSTER {name} RESUME wakes it.")),
            Self::OwnsClusters { clusters, .. } => {
                Some(format!("Drop them first, or give them another owner: {}.", clusters.join(", ")))
            }
            _ => None,
        }
    }
}
