//! What can happen to the clusters: one change makes of a state another one, or says why not. `access.rs` has what is about roles.

use std::collections::BTreeSet;

use types::Oid;

use super::spec::check_name;
use super::{
    Author, ClusterId, ClusterOptions, ClusterSpec, ClusterState, DesiredState, Error, Grantee, Inventory, Privilege,
    Result, RoleRef, WORKERS_MAX,
};
use crate::events::{ClusterEvent, EventKind, History};

mod access;

#[cfg(test)]
mod tests;

/// What CREATE does about a cluster that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// Fail.
    Refuse,
    /// IF NOT EXISTS: leave it as it is.
    Keep,
    /// OR REPLACE: give it these options and for all others what a new one has; it stays its owner's, and who may use it still may.
    Replace,
}

/// A change to the clusters, as a statement says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Create {
        name: String,
        options: ClusterOptions,
        if_exists: IfExists,
    },
    /// The options that are named.
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
    /// Nothing happens to a cluster that is suspended.
    Suspend {
        name: String,
    },
    /// Nothing happens to a cluster that is awake.
    Resume {
        name: String,
    },
    /// The cluster has been idle for long. Nothing happens where it has changed since that generation of it.
    SuspendIdle {
        cluster: ClusterId,
        generation: u64,
    },
    /// A statement needs the cluster. Nothing happens where it is awake.
    Wake {
        name: String,
    },
    Drop {
        name: String,
        /// IF EXISTS: nothing happens where it does not.
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
    /// The clusters that a role's statements run on, the first first; none is as if it had never been set.
    SetDefaultClusters {
        role: RoleRef,
        clusters: Vec<String>,
    },
    /// The role goes: nothing is granted to it or set for it any more. Refused while it owns clusters.
    ForgetRole {
        role: Oid,
    },
}

impl DesiredState {
    /// The state after a change, with what happened, which is in its history already. No event means that everything was so before.
    ///
    /// `at` is in microseconds since 1970 UTC.
    ///
    /// # Errors
    /// What the change names is not there or there already, a value is out of its limits, or the author may not.
    pub fn change(
        &self,
        inventory: &Inventory,
        change: &Change,
        author: &Author,
        at: i64,
    ) -> Result<(DesiredState, Vec<ClusterEvent>)> {
        let mut step = Step { state: self.clone(), inventory, author, at, events: Vec::new() };
        step.state.generation += 1;
        step.make(change)?;
        if step.events.is_empty() {
            return Ok((self.clone(), Vec::new()));
        }
        for event in &step.events {
            step.state.history.push(event.clone(), History::CHANGES_KEPT);
        }
        debug_assert_eq!(step.state.check(), Ok(()), "a change keeps what states fulfil");
        Ok((step.state, step.events))
    }
}

/// A change while it is made.
struct Step<'a> {
    state: DesiredState,
    inventory: &'a Inventory,
    author: &'a Author,
    at: i64,
    events: Vec<ClusterEvent>,
}

impl Step<'_> {
    fn make(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::Create { name, options, if_exists } => self.create(name, options, *if_exists),
            Change::Alter { name, options } => self.alter(name, options),
            Change::Rename { name, to } => self.rename(name, to),
            Change::SetOwner { name, owner } => self.set_owner(name, owner),
            Change::Suspend { name } => self.suspend(name),
            Change::Resume { name } => self.resume(name),
            Change::SuspendIdle { cluster, generation } => self.suspend_idle(*cluster, *generation),
            Change::Wake { name } => self.wake(name),
            Change::Drop { name, if_exists } => self.drop(name, *if_exists),
            Change::Grant { clusters, privileges, to } => self.grant(clusters, privileges, to, true),
            Change::Revoke { clusters, privileges, from } => self.grant(clusters, privileges, from, false),
            Change::SetDefaultClusters { role, clusters } => self.set_default_clusters(role, clusters),
            Change::ForgetRole { role } => self.forget_role(*role),
        }
    }

    fn create(&mut self, name: &str, options: &ClusterOptions, if_exists: IfExists) -> Result<()> {
        if let Ok(existing) = self.state.named(name) {
            let id = existing.id;
            return match if_exists {
                IfExists::Refuse => Err(Error::DuplicateCluster { name: name.to_owned() }),
                IfExists::Keep => Ok(()),
                IfExists::Replace => self.replace(id, options),
            };
        }
        let owner = match self.author {
            Author::Role(actor) if actor.superuser || actor.create_cluster => actor.role.oid,
            Author::Role(_) | Author::Instance => return Err(Error::NoCreate),
        };
        let spec = ClusterSpec::new(name, owner, options, self.inventory)?;
        let id = self.state.next_cluster;
        self.state.next_cluster = ClusterId(id.0 + 1);
        let by = self.author.name().map(str::to_owned);
        let detail = spec.described();
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
        let detail = spec.described();
        let at = self.at;
        let cluster = self.changed(id);
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
        let cluster = self.state.named(name)?;
        cluster.require_owner(self.author)?;
        let id = cluster.id;
        let spec = cluster.spec.with(options, self.inventory)?;
        let detail = cluster.spec.differences(&spec);
        if detail.is_empty() {
            return Ok(());
        }
        self.changed(id).spec = spec;
        self.check_workers()?;
        self.record(id, EventKind::Altered, detail);
        Ok(())
    }

    fn rename(&mut self, name: &str, to: &str) -> Result<()> {
        let cluster = self.state.named(name)?;
        cluster.require_owner(self.author)?;
        if cluster.is_default() {
            return Err(Error::CannotRename { name: name.to_owned() });
        }
        check_name(to)?;
        if self.state.named(to).is_ok() {
            return Err(Error::DuplicateCluster { name: to.to_owned() });
        }
        let id = cluster.id;
        self.changed(id).spec.name = to.to_owned();
        self.record(id, EventKind::Renamed, format!("{name} -> {to}"));
        Ok(())
    }

    fn set_owner(&mut self, name: &str, owner: &RoleRef) -> Result<()> {
        let cluster = self.state.named(name)?;
        cluster.require_owner(self.author)?;
        if cluster.spec.owner == owner.oid {
            return Ok(());
        }
        let id = cluster.id;
        self.changed(id).spec.owner = owner.oid;
        self.record(id, EventKind::OwnerChanged, format!("owner {}", owner.name));
        Ok(())
    }

    fn suspend(&mut self, name: &str) -> Result<()> {
        let cluster = self.state.named(name)?;
        cluster.require(self.author, Privilege::Operate)?;
        if !cluster.suspended {
            let id = cluster.id;
            self.put_to_sleep(id, String::new());
        }
        Ok(())
    }

    fn suspend_idle(&mut self, id: ClusterId, generation: u64) -> Result<()> {
        let Some(cluster) = self.state.clusters.get(&id) else { return Ok(()) };
        cluster.require(self.author, Privilege::Operate)?;
        if !cluster.suspended && cluster.generation == generation {
            self.put_to_sleep(id, "idle".to_owned());
        }
        Ok(())
    }

    fn resume(&mut self, name: &str) -> Result<()> {
        let cluster = self.state.named(name)?;
        cluster.require(self.author, Privilege::Operate)?;
        if cluster.suspended {
            let id = cluster.id;
            self.wake_up(id, String::new());
        }
        Ok(())
    }

    fn wake(&mut self, name: &str) -> Result<()> {
        let cluster = self.state.named(name)?;
        cluster.require(self.author, Privilege::Usage)?;
        if !cluster.suspended {
            return Ok(());
        }
        if !cluster.spec.auto_resume {
            return Err(Error::Suspended { name: name.to_owned() });
        }
        let id = cluster.id;
        self.wake_up(id, "for a statement".to_owned());
        Ok(())
    }

    fn put_to_sleep(&mut self, id: ClusterId, detail: String) {
        self.changed(id).suspended = true;
        self.record(id, EventKind::Suspended, detail);
    }

    fn wake_up(&mut self, id: ClusterId, detail: String) {
        let at = self.at;
        let cluster = self.changed(id);
        cluster.suspended = false;
        cluster.awake_since = at;
        self.record(id, EventKind::Resumed, detail);
    }

    fn drop(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let cluster = match self.state.named(name) {
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

    /// The cluster, marked as changed now.
    fn changed(&mut self, id: ClusterId) -> &mut ClusterState {
        let cluster = self.state.clusters.get_mut(&id).expect("it was just found");
        cluster.generation = self.state.generation;
        cluster.changed_at = self.at;
        cluster.changed_by = self.author.name().map(str::to_owned);
        cluster
    }

    fn check_workers(&self) -> Result<()> {
        let workers = self.state.clusters.values().map(|cluster| cluster.spec.node_count).sum();
        if WORKERS_MAX < workers {
            return Err(Error::TooManyWorkers { workers, max: WORKERS_MAX });
        }
        Ok(())
    }

    fn record(&mut self, id: ClusterId, what: EventKind, detail: String) {
        let cluster = Some(self.state.clusters[&id].spec.name.clone());
        let who = self.author.name().map(str::to_owned);
        self.events.push(ClusterEvent { at: self.at, cluster, who, what, detail });
    }
}
