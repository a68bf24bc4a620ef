//! Changes of the desired state by statements and by the instance itself; `role_access.rs` has those of grants and roles.

use std::collections::BTreeSet;

use types::Oid;

use super::cluster_spec::check_name;
use super::{
    Author, ClusterId, ClusterOptions, ClusterSpec, ClusterState, DesiredState, Error, Grantee, Inventory, Privilege,
    Result, RoleRef, WORKERS_MAX,
};
use crate::cluster_events::{ClusterEvent, EventHistory, EventKind};

mod role_access;

#[cfg(test)]
mod tests;

/// Behaviour of CREATE CLUSTER if a cluster with that name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// Fail.
    Refuse,
    /// IF NOT EXISTS: leave the cluster unchanged.
    Keep,
    /// OR REPLACE: set these options and reset all others to their defaults; owner and grants stay.
    Replace,
}

/// Change of the desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Create {
        name: String,
        options: ClusterOptions,
        if_exists: IfExists,
    },
    /// Change of the named options.
    Alter {
        name: String,
        options: ClusterOptions,
    },
    Rename {
        name: String,
        to: String,
    },
    SetOwner {
        name: String,
        owner: RoleRef,
    },
    /// ALTER CLUSTER … SUSPEND; no effect on a suspended cluster.
    Suspend {
        name: String,
    },
    /// ALTER CLUSTER … RESUME; no effect on a cluster that is not suspended.
    Resume {
        name: String,
    },
    /// Suspension of an idle cluster by AUTO_SUSPEND; no effect if the cluster's generation is another one by now.
    AutoSuspend {
        cluster: ClusterId,
        generation: u64,
    },
    /// Resumption by AUTO_RESUME for a statement; no effect on a cluster that is not suspended.
    AutoResume {
        name: String,
    },
    Drop {
        name: String,
        /// True for IF EXISTS: no effect if the cluster does not exist.
        if_exists: bool,
    },
    Grant {
        clusters: Vec<String>,
        privileges: Vec<Privilege>,
        to: Vec<Grantee>,
    },
    Revoke {
        clusters: Vec<String>,
        privileges: Vec<Privilege>,
        from: Vec<Grantee>,
    },
    /// Clusters for a role's statements, in order of preference; an empty list removes the setting.
    SetDefaultClusters {
        role: RoleRef,
        clusters: Vec<String>,
    },
    /// Removal of all grants and settings of a dropped role; refused while it owns clusters.
    RemoveRole {
        role: Oid,
    },
}

impl DesiredState {
    /// Returns the state after a change, and its events, which are also in the new state's history. No event means that
    /// the change had no effect.
    ///
    /// `at` is in microseconds since 1970 UTC.
    ///
    /// # Errors
    /// A named object does not exist or exists already, a value is out of range, or the author lacks a privilege.
    pub fn change(
        &self,
        inventory: &Inventory,
        change: &Change,
        author: &Author,
        at: i64,
    ) -> Result<(DesiredState, Vec<ClusterEvent>)> {
        let mut step = Transition { state: self.clone(), inventory, author, at, events: Vec::new() };
        step.state.generation += 1;
        step.apply(change)?;
        if step.events.is_empty() {
            return Ok((self.clone(), Vec::new()));
        }
        for event in &step.events {
            step.state.history.push(event.clone(), EventHistory::CHANGES_MAX);
        }
        debug_assert_eq!(
            step.state.check_invariants(),
            Ok(()),
            "a change preserves the invariants of the desired state"
        );
        Ok((step.state, step.events))
    }
}

/// State under construction by a change.
struct Transition<'a> {
    state: DesiredState,
    inventory: &'a Inventory,
    author: &'a Author,
    at: i64,
    events: Vec<ClusterEvent>,
}

impl Transition<'_> {
    fn apply(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::Create { name, options, if_exists } => self.create(name, options, *if_exists),
            Change::Alter { name, options } => self.alter(name, options),
            Change::Rename { name, to } => self.rename(name, to),
            Change::SetOwner { name, owner } => self.set_owner(name, owner),
            Change::Suspend { name } => self.suspend(name),
            Change::Resume { name } => self.resume(name),
            Change::AutoSuspend { cluster, generation } => self.suspend_idle(*cluster, *generation),
            Change::AutoResume { name } => self.auto_resume(name),
            Change::Drop { name, if_exists } => self.drop(name, *if_exists),
            Change::Grant { clusters, privileges, to } => self.grant(clusters, privileges, to, true),
            Change::Revoke { clusters, privileges, from } => self.grant(clusters, privileges, from, false),
            Change::SetDefaultClusters { role, clusters } => self.set_default_clusters(role, clusters),
            Change::RemoveRole { role } => self.forget_role(*role),
        }
    }

    fn create(&mut self, name: &str, options: &ClusterOptions, if_exists: IfExists) -> Result<()> {
        if let Ok(existing) = self.state.cluster_named(name) {
            let id = existing.id;
            return match if_exists {
                IfExists::Refuse => Err(Error::DuplicateCluster { name: name.to_owned() }),
                IfExists::Keep => Ok(()),
                IfExists::Replace => self.replace(id, options),
            };
        }
        let owner = match self.author {
            Author::Role(actor) if actor.superuser || actor.create_cluster => actor.role.oid,
            Author::Role(_) | Author::Instance => return Err(Error::NoCreatePrivilege),
        };
        let spec = ClusterSpec::new(name, owner, options, self.inventory)?;
        let id = self.state.next_cluster;
        self.state.next_cluster = ClusterId(id.0 + 1);
        let by = self.author.name().map(str::to_owned);
        let detail = spec.describe();
        let cluster = ClusterState {
            id,
            spec,
            suspended: false,
            generation: self.state.generation,
            grants: BTreeSet::new(),
            created_at: self.at,
            created_by: by.clone(),
            changed_at: self.at,
            changed_by: by,
            awake_since: self.at,
        };
        self.state.clusters.insert(id, cluster);
        self.check_workers()?;
        self.record(id, EventKind::Created, detail);
        Ok(())
    }

    fn replace(&mut self, id: ClusterId, options: &ClusterOptions) -> Result<()> {
        let existing = &self.state.clusters[&id];
        existing.require_owner(self.author)?;
        let spec = ClusterSpec::new(&existing.spec.name, existing.spec.owner, options, self.inventory)?;
        let detail = spec.describe();
        let at = self.at;
        let cluster = self.mark_changed(id);
        cluster.spec = spec;
        if cluster.suspended {
            cluster.suspended = false;
            cluster.awake_since = at;
        }
        self.check_workers()?;
        self.record(id, EventKind::Replaced, detail);
        Ok(())
    }

    fn alter(&mut self, name: &str, options: &ClusterOptions) -> Result<()> {
        let cluster = self.state.cluster_named(name)?;
        cluster.require_owner(self.author)?;
        let id = cluster.id;
        let spec = cluster.spec.with_options(options, self.inventory)?;
        let detail = cluster.spec.differences(&spec);
        if detail.is_empty() {
            return Ok(());
        }
        self.mark_changed(id).spec = spec;
        self.check_workers()?;
        self.record(id, EventKind::Altered, detail);
        Ok(())
    }

    fn rename(&mut self, name: &str, to: &str) -> Result<()> {
        let cluster = self.state.cluster_named(name)?;
        cluster.require_owner(self.author)?;
        if cluster.is_default() {
            return Err(Error::CannotRename { name: name.to_owned() });
        }
        check_name(to)?;
        if self.state.cluster_named(to).is_ok() {
            return Err(Error::DuplicateCluster { name: to.to_owned() });
        }
        let id = cluster.id;
        self.mark_changed(id).spec.name = to.to_owned();
        self.record(id, EventKind::Renamed, format!("{name} -> {to}"));
        Ok(())
    }

    fn set_owner(&mut self, name: &str, owner: &RoleRef) -> Result<()> {
        let cluster = self.state.cluster_named(name)?;
        cluster.require_owner(self.author)?;
        if cluster.spec.owner == owner.oid {
            return Ok(());
        }
        let id = cluster.id;
        self.mark_changed(id).spec.owner = owner.oid;
        self.record(id, EventKind::OwnerChanged, format!("owner {}", owner.name));
        Ok(())
    }

    fn suspend(&mut self, name: &str) -> Result<()> {
        let cluster = self.state.cluster_named(name)?;
        cluster.require_privilege(self.author, Privilege::Operate)?;
        if !cluster.suspended {
            let id = cluster.id;
            self.suspend_cluster(id, String::new());
        }
        Ok(())
    }

    fn suspend_idle(&mut self, id: ClusterId, generation: u64) -> Result<()> {
        let Some(cluster) = self.state.clusters.get(&id) else { return Ok(()) };
        cluster.require_privilege(self.author, Privilege::Operate)?;
        if !cluster.suspended && cluster.generation == generation {
            self.suspend_cluster(id, "idle".to_owned());
        }
        Ok(())
    }

    fn resume(&mut self, name: &str) -> Result<()> {
        let cluster = self.state.cluster_named(name)?;
        cluster.require_privilege(self.author, Privilege::Operate)?;
        if cluster.suspended {
            let id = cluster.id;
            self.resume_cluster(id, String::new());
        }
        Ok(())
    }

    fn auto_resume(&mut self, name: &str) -> Result<()> {
        let cluster = self.state.cluster_named(name)?;
        cluster.require_privilege(self.author, Privilege::Usage)?;
        if !cluster.suspended {
            return Ok(());
        }
        if !cluster.spec.auto_resume {
            return Err(Error::Suspended { name: name.to_owned() });
        }
        let id = cluster.id;
        self.resume_cluster(id, "for a statement".to_owned());
        Ok(())
    }

    fn suspend_cluster(&mut self, id: ClusterId, detail: String) {
        self.mark_changed(id).suspended = true;
        self.record(id, EventKind::Suspended, detail);
    }

    fn resume_cluster(&mut self, id: ClusterId, detail: String) {
        let at = self.at;
        let cluster = self.mark_changed(id);
        cluster.suspended = false;
        cluster.awake_since = at;
        self.record(id, EventKind::Resumed, detail);
    }

    fn drop(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let cluster = match self.state.cluster_named(name) {
            Err(Error::UndefinedCluster { .. }) if if_exists => return Ok(()),
            found => found?,
        };
        cluster.require_owner(self.author)?;
        if cluster.is_default() {
            return Err(Error::CannotDrop { name: name.to_owned() });
        }
        let id = cluster.id;
        self.record(id, EventKind::Dropped, String::new());
        self.state.clusters.remove(&id);
        for list in self.state.default_clusters.values_mut() {
            list.retain(|listed| *listed != id);
        }
        self.state.default_clusters.retain(|_, list| !list.is_empty());
        Ok(())
    }

    /// Marks a cluster as changed now and returns it.
    fn mark_changed(&mut self, id: ClusterId) -> &mut ClusterState {
        let cluster = self.state.clusters.get_mut(&id).expect("a change refers to a cluster of its state");
        cluster.generation = self.state.generation;
        cluster.changed_at = self.at;
        cluster.changed_by = self.author.name().map(str::to_owned);
        cluster
    }

    /// Checks the limit on the number of all workers.
    fn check_workers(&self) -> Result<()> {
        let workers = self.state.clusters.values().map(|cluster| cluster.spec.node_count).sum();
        if WORKERS_MAX < workers {
            return Err(Error::TooManyWorkers { workers, max: WORKERS_MAX });
        }
        Ok(())
    }

    /// Records an event of a cluster.
    fn record(&mut self, id: ClusterId, kind: EventKind, detail: String) {
        let cluster = Some(self.state.clusters[&id].spec.name.clone());
        let author = self.author.name().map(str::to_owned);
        self.events.push(ClusterEvent { at: self.at, cluster, author, kind, detail });
    }
}
