//! Desired state: the clusters of an instance, their privileges and the default clusters of roles, as one immutable
//! value.
//!
//! [`DesiredState::change`] turns a state into another one and returns the events.
//!
//! - `cluster_spec.rs`: the table of a cluster's options; `cluster_option.rs`: the form, limits and value of one
//! - `hardware_inventory.rs`: available hardware and workload management profiles
//! - `privilege.rs`: privileges on clusters
//! - `change.rs`: changes by statements and by the instance itself
//! - `adopt_external_clusters.rs`: changes that others have made in an external store, such as Kubernetes resources
//! - `error.rs`: reasons for refusing a change
//! - `stored_encoding.rs`: the file format

mod adopt_external_clusters;
mod change;
mod cluster_option;
mod cluster_spec;
mod error;
mod hardware_inventory;
mod privilege;
pub mod stored_encoding;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use types::Oid;

use crate::cluster_events::EventHistory;

pub use adopt_external_clusters::ExternalCluster;
pub use change::{Change, IfExists};
pub use cluster_option::{ClusterOption, OptionForm, OptionValue};
pub use cluster_spec::{CLUSTER_OPTIONS, ClusterOptions, ClusterSpec, WorkerOptions};
pub use error::{Error, Result};
pub use hardware_inventory::{HardwareInstance, HardwareKind, Inventory, WlmProfile};
pub use privilege::{Actor, Author, Grant, Grantee, Privilege, RoleRef};

/// Name of the cluster that every instance has: all roles may use it, and it can be neither dropped nor renamed. Also
/// the name of the WLM profile that every instance has.
pub const DEFAULT_CLUSTER_NAME: &str = "default";
/// Most workers of one cluster.
pub const NODES_MAX: u32 = 64;
/// Most workers of all clusters together, including suspended ones, so that resuming a cluster is never refused.
pub const WORKERS_MAX: u32 = 3_000;
/// Longest name of a cluster, the same as for PostgreSQL's identifiers.
pub const NAME_BYTES_MAX: usize = 63;

/// Id of a cluster, which stays the same when the cluster is renamed. Never reused within an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(pub u32);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Desired state of one cluster. Times are in microseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterState {
    pub id: ClusterId,
    pub spec: ClusterSpec,
    /// True if it should have no workers for now.
    pub suspended: bool,
    /// Generation of the state that last changed it.
    pub generation: u64,
    pub grants: BTreeSet<Grant>,
    pub created_at: i64,
    /// Name of its creator at that time; `None` for the instance itself.
    pub created_by: Option<String>,
    pub changed_at: i64,
    /// Name of the author of the last change at that time; `None` for the instance itself.
    pub changed_by: Option<String>,
    /// Time of its creation or last resumption, which is the earliest start of its idle time.
    pub awake_since: i64,
}

/// Desired state of all clusters of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredState {
    generation: u64,
    next_cluster: ClusterId,
    clusters: BTreeMap<ClusterId, ClusterState>,
    /// Clusters for the statements of each role, in order of preference.
    default_clusters: BTreeMap<Oid, Vec<ClusterId>>,
    history: EventHistory,
}

impl DesiredState {
    /// Creates the state of a new instance: the cluster `default` with one worker in the server's process, owned by
    /// `owner`.
    #[must_use]
    pub fn initial(owner: Oid, at: i64) -> DesiredState {
        let id = ClusterId(1);
        let spec = ClusterSpec::with_defaults(DEFAULT_CLUSTER_NAME, owner);
        let cluster = ClusterState {
            id,
            spec,
            suspended: false,
            generation: 1,
            grants: BTreeSet::new(),
            created_at: at,
            created_by: None,
            changed_at: at,
            changed_by: None,
            awake_since: at,
        };
        DesiredState {
            generation: 1,
            next_cluster: ClusterId(2),
            clusters: BTreeMap::from([(id, cluster)]),
            default_clusters: BTreeMap::new(),
            history: EventHistory::default(),
        }
    }

    /// Returns a number that grows with each change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Iterates over all clusters, oldest first.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = &ClusterState> {
        self.clusters.values()
    }

    /// Returns a cluster by its id.
    #[must_use]
    pub fn cluster(&self, id: ClusterId) -> Option<&ClusterState> {
        self.clusters.get(&id)
    }

    /// Returns a cluster by its name.
    ///
    /// # Errors
    /// [`Error::UndefinedCluster`].
    pub fn cluster_named(&self, name: &str) -> Result<&ClusterState> {
        let found = self.clusters.values().find(|cluster| cluster.spec.name == name);
        found.ok_or_else(|| Error::UndefinedCluster { name: name.to_owned() })
    }

    /// Returns the history of changes.
    #[must_use]
    pub fn history(&self) -> &EventHistory {
        &self.history
    }

    /// Iterates over the clusters that were set for a role's statements, in order of preference.
    pub fn default_clusters(&self, role: Oid) -> impl ExactSizeIterator<Item = &ClusterState> {
        let ids = self.default_clusters.get(&role).map_or(&[][..], Vec::as_slice);
        ids.iter().map(|id| self.clusters.get(id).expect("a dropped cluster is in no list"))
    }

    /// Returns all roles with grants or default clusters, not counting owners.
    #[must_use]
    pub fn referenced_roles(&self) -> BTreeSet<Oid> {
        let granted = self.clusters.values().flat_map(|cluster| &cluster.grants).filter_map(|grant| grant.role);
        granted.chain(self.default_clusters.keys().copied()).collect()
    }

    /// Returns the number of workers of all clusters that are not suspended.
    #[must_use]
    pub fn awake_workers(&self) -> u32 {
        self.clusters.values().map(ClusterState::wanted_workers).sum()
    }

    /// Returns a copy with only the clusters that satisfy the predicate, for a control plane that reconciles only some
    /// kinds of hardware.
    #[must_use]
    pub fn filtered(&self, is_meant: impl Fn(&ClusterSpec) -> bool) -> DesiredState {
        let mut part = self.clone();
        part.clusters.retain(|_, cluster| is_meant(&cluster.spec));
        part
    }

    /// Checks the invariants, which every change preserves and a stored state must satisfy. Returns a message about a
    /// violated one.
    fn check_invariants(&self) -> std::result::Result<(), String> {
        let mut names = BTreeSet::new();
        for (id, cluster) in &self.clusters {
            let name = &cluster.spec.name;
            if cluster.id != *id || self.next_cluster <= *id {
                return Err(format!("cluster \"{name}\" has an id that is not its own"));
            }
            if !names.insert(name.as_str()) {
                return Err(format!("cluster \"{name}\" is there twice"));
            }
            if self.generation < cluster.generation {
                return Err(format!("cluster \"{name}\" is of a later generation than the state"));
            }
            cluster.spec.check().map_err(|error| error.to_string())?;
        }
        if !names.contains(DEFAULT_CLUSTER_NAME) {
            return Err(format!("cluster \"{DEFAULT_CLUSTER_NAME}\" is missing"));
        }
        let unknown = self.default_clusters.values().flatten().find(|id| !self.clusters.contains_key(id));
        unknown.map_or(Ok(()), |id| Err(format!("a role's clusters name one with id {id}, which does not exist")))
    }
}

impl ClusterState {
    /// Whether it is the cluster `default`.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.spec.name == DEFAULT_CLUSTER_NAME
    }

    /// Returns the number of workers that it should have now.
    #[must_use]
    pub fn wanted_workers(&self) -> u32 {
        if self.suspended { 0 } else { self.spec.node_count }
    }
}
