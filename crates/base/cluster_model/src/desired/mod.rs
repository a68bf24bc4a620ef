//! What there should be: the clusters of an instance, who may use them and who uses which, as one plain value.
//!
//! A state changes only into another state, by [`DesiredState::change`], which also says what happened. Start at `spec.rs` for what can be
//! said of a cluster, `change.rs` for what can happen, `adopt.rs` for what others do; `stored.rs` is what lies on disk.

mod adopt;
mod change;
mod error;
mod inventory;
mod privilege;
mod spec;
pub mod stored;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use types::Oid;

use crate::events::History;

pub use adopt::FoundCluster;
pub use change::{Change, IfExists};
pub use error::{Error, Result};
pub use inventory::{HardwareInstance, HardwareKind, Inventory, WlmProfile};
pub use privilege::{Actor, Author, Grant, Grantee, Privilege, RoleRef};
pub use spec::{ClusterOptions, ClusterSpec};

/// The cluster that every instance has: it can be used by all, and neither be dropped nor renamed. Also the name of the WLM profile that
/// every instance has.
pub const DEFAULT: &str = "default";
/// Most workers of one cluster.
pub const NODES_MAX: u32 = 64;
/// Most workers of all clusters together. Those of suspended clusters count: waking one is never refused.
pub const WORKERS_MAX: u32 = 3_000;
/// Longest name of a cluster, as of everything in PostgreSQL.
pub const NAME_BYTES_MAX: usize = 63;

/// Identity of a cluster, which a rename does not change. Never given twice by an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(pub u32);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One cluster as it should be, and who made it so. Times are microseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterState {
    pub id: ClusterId,
    pub spec: ClusterSpec,
    /// It should have no workers for now.
    pub suspended: bool,
    /// The state's generation that last changed it.
    pub generation: u64,
    pub grants: BTreeSet<Grant>,
    pub created_at: i64,
    /// Who made it, by the name at the time; the instance itself where `None`.
    pub created_by: Option<String>,
    pub changed_at: i64,
    pub changed_by: Option<String>,
    /// When it was made or last resumed: it is not idle for longer than since then.
    pub awake_since: i64,
}

/// All clusters of an instance as they should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredState {
    generation: u64,
    next_cluster: ClusterId,
    clusters: BTreeMap<ClusterId, ClusterState>,
    /// Which clusters a role's statements run on, the first first.
    default_clusters: BTreeMap<Oid, Vec<ClusterId>>,
    history: History,
}

impl DesiredState {
    /// What an instance starts with: the cluster `default` of one worker in the process itself, owned by `owner`.
    #[must_use]
    pub fn fresh(owner: Oid, at: i64) -> DesiredState {
        let id = ClusterId(1);
        let spec = ClusterSpec {
            name: DEFAULT.to_owned(),
            node_count: 1,
            hardware_instance: HardwareInstance::EMBEDDED.to_owned(),
            wlm_profile: DEFAULT.to_owned(),
            auto_suspend: None,
            auto_resume: true,
            max_spill_pct: None,
            max_cache_pct: None,
            owner,
        };
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
            history: History::default(),
        }
    }

    /// Grows with each change.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// All clusters, oldest first.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = &ClusterState> {
        self.clusters.values()
    }

    /// A cluster by its identity.
    #[must_use]
    pub fn cluster(&self, id: ClusterId) -> Option<&ClusterState> {
        self.clusters.get(&id)
    }

    /// A cluster by its name.
    ///
    /// # Errors
    /// [`Error::UndefinedCluster`].
    pub fn named(&self, name: &str) -> Result<&ClusterState> {
        let found = self.clusters.values().find(|cluster| cluster.spec.name == name);
        found.ok_or_else(|| Error::UndefinedCluster { name: name.to_owned() })
    }

    /// What has been changed, oldest first, as far back as it is kept.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The clusters that were set for a role's statements, the first first; none where nothing was set.
    pub fn default_clusters(&self, role: Oid) -> impl ExactSizeIterator<Item = &ClusterState> {
        let ids = self.default_clusters.get(&role).map_or(&[][..], Vec::as_slice);
        ids.iter().map(|id| self.clusters.get(id).expect("a dropped cluster is in no list"))
    }

    /// All roles that something is granted to or set for; who owns clusters is not asked.
    #[must_use]
    pub fn roles(&self) -> BTreeSet<Oid> {
        let granted = self.clusters.values().flat_map(|cluster| &cluster.grants).filter_map(|grant| grant.role);
        granted.chain(self.default_clusters.keys().copied()).collect()
    }

    /// Workers of all clusters that are not suspended.
    #[must_use]
    pub fn awake_workers(&self) -> u32 {
        self.clusters.values().map(ClusterState::wanted_workers).sum()
    }

    /// The same with some of its clusters alone, for who makes workers of these and not of the others.
    #[must_use]
    pub fn only(&self, is_meant: impl Fn(&ClusterSpec) -> bool) -> DesiredState {
        let mut part = self.clone();
        part.clusters.retain(|_, cluster| is_meant(&cluster.spec));
        part
    }

    /// What `change` keeps and a stored state must fulfil, or what is wrong with it.
    fn check(&self) -> std::result::Result<(), String> {
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
        if !names.contains(DEFAULT) {
            return Err(format!("cluster \"{DEFAULT}\" is missing"));
        }
        let unknown = self.default_clusters.values().flatten().find(|id| !self.clusters.contains_key(id));
        unknown.map_or(Ok(()), |id| Err(format!("a role's clusters name one with id {id}, which does not exist")))
    }
}

impl ClusterState {
    /// Whether it is the cluster that every instance has.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.spec.name == DEFAULT
    }

    /// How many workers it should have now.
    #[must_use]
    pub fn wanted_workers(&self) -> u32 {
        if self.suspended { 0 } else { self.spec.node_count }
    }
}
