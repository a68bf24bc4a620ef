//! Adoption of changes that others have made in an external store of clusters, such as Kubernetes resources.

use std::collections::BTreeSet;

use super::{ClusterId, ClusterSpec, ClusterState, DesiredState, Grant, HardwareInstance, NODES_MAX, WORKERS_MAX};
use crate::cluster_events::{ClusterEvent, EventHistory, EventKind};

/// Largest id that a cluster may bring along.
const ADOPTED_ID_MAX: u32 = u32::MAX / 2;

#[cfg(test)]
mod tests;

/// Cluster in the external store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalCluster {
    /// Id under which the instance created it; `None` if somebody else created it.
    pub id: Option<ClusterId>,
    pub spec: ClusterSpec,
    pub suspended: bool,
    pub grants: BTreeSet<Grant>,
    /// Author of its last change.
    pub changed_by: Option<String>,
    /// Author of the last change of its number of workers, such as an autoscaler.
    pub worker_count_changed_by: Option<String>,
}

impl DesiredState {
    /// Returns the cluster of this state that corresponds to one in the external store: by id, or by name if it has no
    /// id.
    #[must_use]
    pub fn matching_cluster(&self, id: Option<ClusterId>, name: &str) -> Option<&ClusterState> {
        match id {
            Some(id) => self.cluster(id),
            None => self.clusters().find(|cluster| cluster.spec.name == name),
        }
    }

    /// Returns the state after adopting the clusters of the external store, and the events; none if nothing has
    /// changed.
    ///
    /// `found` has all clusters of the store, and `is_external` tells which clusters belong there: those that are missing
    /// in `found` are dropped. Changes that violate a limit, or take the name of another cluster, are ignored. `at` is
    /// in microseconds since 1970 UTC.
    #[must_use]
    pub fn adopt(
        &self,
        external: &[ExternalCluster],
        is_external: impl Fn(&ClusterSpec) -> bool,
        at: i64,
    ) -> (DesiredState, Vec<ClusterEvent>) {
        let mut step = Adoption { state: self.clone(), at, events: Vec::new() };
        step.state.generation += 1;
        let mut there = BTreeSet::new();
        for one in external {
            let known = step.state.matching_cluster(one.id, &one.spec.name).map(|cluster| cluster.id);
            match known {
                // Two objects have the same id or name: the first one wins.
                Some(id) if !there.insert(id) => {}
                Some(id) => step.change(id, one),
                None => there.extend(step.create(one)),
            }
        }
        let gone: Vec<ClusterId> = step
            .state
            .clusters()
            .filter(|cluster| is_external(&cluster.spec) && !there.contains(&cluster.id))
            .map(|cluster| cluster.id)
            .collect();
        for id in gone {
            step.drop_missing(id);
        }
        if step.events.is_empty() {
            return (self.clone(), Vec::new());
        }
        for event in &step.events {
            step.state.history.push(event.clone(), EventHistory::CHANGES_MAX);
        }
        debug_assert_eq!(
            step.state.check_invariants(),
            Ok(()),
            "adoption preserves the invariants of the desired state"
        );
        (step.state, step.events)
    }
}

/// State under construction by an adoption.
struct Adoption {
    state: DesiredState,
    at: i64,
    events: Vec<ClusterEvent>,
}

impl Adoption {
    fn change(&mut self, id: ClusterId, found: &ExternalCluster) {
        let before = self.state.clusters[&id].clone();
        // The owner changes by statements only, and `default` is never renamed.
        let mut spec = ClusterSpec { owner: before.spec.owner, ..found.spec.clone() };
        let is_taken = self.state.clusters().any(|other| other.id != id && other.spec.name == spec.name);
        if is_taken || before.is_default() {
            spec.name.clone_from(&before.spec.name);
        }
        if spec.check().is_err() || self.exceeds_worker_limit(Some(id), spec.node_count) {
            spec = before.spec.clone();
        }
        if spec.name != before.spec.name {
            self.update(id, found.changed_by.as_deref(), |cluster| cluster.spec.name.clone_from(&spec.name));
            self.record(
                id,
                found.changed_by.as_deref(),
                EventKind::Renamed,
                format!("{} -> {}", before.spec.name, spec.name),
            );
        }
        // The number of workers may have another author than the other options.
        let sized = ClusterSpec { node_count: spec.node_count, name: spec.name.clone(), ..before.spec.clone() };
        for (from, to, author) in [
            (&before.spec, &sized, found.worker_count_changed_by.as_deref()),
            (&sized, &spec, found.changed_by.as_deref()),
        ] {
            let different = from.differences(to);
            if !different.is_empty() {
                self.update(id, author, |cluster| cluster.spec = to.clone());
                self.record(id, author, EventKind::Altered, different);
            }
        }
        if found.suspended != before.suspended {
            let at = self.at;
            self.update(id, found.changed_by.as_deref(), |cluster| {
                cluster.suspended = found.suspended;
                if !found.suspended {
                    cluster.awake_since = at;
                }
            });
            let kind = if found.suspended { EventKind::Suspended } else { EventKind::Resumed };
            self.record(id, found.changed_by.as_deref(), kind, String::new());
        }
    }

    fn create(&mut self, found: &ExternalCluster) -> Option<ClusterId> {
        let is_taken = self.state.clusters().any(|other| other.spec.name == found.spec.name);
        if is_taken || found.spec.check().is_err() || self.exceeds_worker_limit(None, found.spec.node_count) {
            return None;
        }
        // A cluster that this instance created before it lost its data folder keeps its id.
        let id = found.id.unwrap_or(self.state.next_cluster);
        // The external store can be edited by hand: an id near the maximum would leave none for new clusters.
        if ADOPTED_ID_MAX < id.0 {
            return None;
        }
        self.state.next_cluster = self.state.next_cluster.max(ClusterId(id.0 + 1));
        let cluster = ClusterState {
            id,
            spec: found.spec.clone(),
            suspended: found.suspended,
            generation: self.state.generation,
            grants: found.grants.clone(),
            created_at: self.at,
            created_by: found.changed_by.clone(),
            changed_at: self.at,
            changed_by: found.changed_by.clone(),
            awake_since: self.at,
        };
        let detail = cluster.spec.describe();
        self.state.clusters.insert(id, cluster);
        self.record(id, found.changed_by.as_deref(), EventKind::Created, detail);
        Some(id)
    }

    /// Drops a cluster that is missing in the external store. The cluster `default` continues on embedded hardware
    /// instead.
    fn drop_missing(&mut self, id: ClusterId) {
        let cluster = &self.state.clusters[&id];
        let name = cluster.spec.name.clone();
        let mut event = |kind, detail| {
            self.events.push(ClusterEvent { at: self.at, cluster: Some(name.clone()), author: None, kind, detail });
        };
        if cluster.is_default() {
            let spec = ClusterSpec { hardware_instance: HardwareInstance::EMBEDDED.to_owned(), ..cluster.spec.clone() };
            event(EventKind::Altered, cluster.spec.differences(&spec));
            let generation = self.state.generation;
            let cluster = self.state.clusters.get_mut(&id).expect("a lost cluster is in the state");
            (cluster.spec, cluster.generation, cluster.changed_at, cluster.changed_by) =
                (spec, generation, self.at, None);
            return;
        }
        event(EventKind::Dropped, String::new());
        self.state.clusters.remove(&id);
        for list in self.state.default_clusters.values_mut() {
            list.retain(|listed| *listed != id);
        }
        self.state.default_clusters.retain(|_, list| !list.is_empty());
    }

    /// Whether a cluster with `nodes` workers would exceed the limit on all workers, instead of or beside the others.
    fn exceeds_worker_limit(&self, instead_of: Option<ClusterId>, nodes: u32) -> bool {
        let others = self.state.clusters().filter(|cluster| Some(cluster.id) != instead_of);
        WORKERS_MAX < others.map(|cluster| cluster.spec.node_count).sum::<u32>() + nodes.min(NODES_MAX)
    }

    /// Changes a cluster and records time and author of the change in it.
    fn update(&mut self, id: ClusterId, author: Option<&str>, change: impl FnOnce(&mut ClusterState)) {
        let cluster = self.state.clusters.get_mut(&id).expect("an adopted change refers to a cluster of the state");
        change(cluster);
        cluster.generation = self.state.generation;
        cluster.changed_at = self.at;
        cluster.changed_by = author.map(str::to_owned);
    }

    /// Records an event of a cluster.
    fn record(&mut self, id: ClusterId, author: Option<&str>, kind: EventKind, detail: String) {
        let cluster = Some(self.state.clusters[&id].spec.name.clone());
        self.events.push(ClusterEvent { at: self.at, cluster, author: author.map(str::to_owned), kind, detail });
    }
}
