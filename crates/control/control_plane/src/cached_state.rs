//! Last known state of a control plane, in memory: desired state, observed workers and history.

use std::collections::HashMap;
use std::sync::Arc;

use cluster_model::cluster_events::{ClusterEvent, EventHistory};
use cluster_model::desired_state::{ClusterId, DesiredState};
use cluster_model::reconcile::ReconcileSettings;
use cluster_model::serving_workers::{ClusterPhase, cluster_phase, serving_workers};
use cluster_model::worker::Worker;
use parking_lot::RwLock;
use types::Clock;

use super::worker_events;
use crate::revision_counter::Revisions;

/// Last known state of a control plane, with a change counter.
#[derive(Debug)]
pub struct CachedState {
    settings: ReconcileSettings,
    clock: Arc<dyn Clock>,
    revisions: Revisions,
    content: RwLock<CachedContent>,
}

#[derive(Debug)]
struct CachedContent {
    desired: Arc<DesiredState>,
    workers: Arc<[Worker]>,
    /// Serving workers by cluster, computed on demand and cleared when one of the fields above changes.
    serving: HashMap<ClusterId, Arc<[Worker]>>,
    /// Events of workers; those of clusters are in the desired state.
    history: EventHistory,
}

impl CachedState {
    /// Creates a state without workers.
    #[must_use]
    pub fn new(desired: DesiredState, settings: ReconcileSettings, clock: Arc<dyn Clock>) -> CachedState {
        let content = CachedContent {
            desired: Arc::new(desired),
            workers: Arc::from([]),
            serving: HashMap::new(),
            history: EventHistory::default(),
        };
        CachedState { settings, clock, revisions: Revisions::default(), content: RwLock::new(content) }
    }

    /// Returns the settings of reconciliation.
    #[must_use]
    pub fn settings(&self) -> &ReconcileSettings {
        &self.settings
    }

    /// Returns the desired state.
    #[must_use]
    pub fn desired(&self) -> Arc<DesiredState> {
        Arc::clone(&self.content.read().desired)
    }

    /// Returns the workers as last observed.
    #[must_use]
    pub fn workers(&self) -> Arc<[Worker]> {
        Arc::clone(&self.content.read().workers)
    }

    /// Returns the serving workers of a cluster; see [`super::ControlPlane::serving`].
    #[must_use]
    pub fn serving(&self, cluster: ClusterId) -> Arc<[Worker]> {
        if let Some(serving) = self.content.read().serving.get(&cluster) {
            return Arc::clone(serving);
        }
        let mut content = self.content.write();
        let Some(state) = content.desired.cluster(cluster) else { return Arc::from([]) };
        let found = serving_workers(state, &content.workers, self.clock.monotonic(), &self.settings);
        let found: Arc<[Worker]> = found.into_iter().cloned().collect();
        content.serving.insert(cluster, Arc::clone(&found));
        found
    }

    /// Returns the phase of a cluster; see [`super::ControlPlane::phase`].
    #[must_use]
    pub fn phase(&self, cluster: ClusterId) -> Option<ClusterPhase> {
        cluster_phase(&self.desired(), cluster, &self.workers(), self.clock.monotonic(), &self.settings)
    }

    /// Returns the events of clusters and workers; see [`super::ControlPlane::events`].
    #[must_use]
    pub fn events(&self) -> Vec<ClusterEvent> {
        let content = self.content.read();
        content.desired.history().merged(&content.history)
    }

    /// Returns the change counter; see [`super::ControlPlane::revisions`].
    #[must_use]
    pub fn revisions(&self) -> &Revisions {
        &self.revisions
    }

    /// Replaces the desired state.
    pub fn set_desired(&self, desired: DesiredState) {
        let mut content = self.content.write();
        content.desired = Arc::new(desired);
        content.serving.clear();
        drop(content);
        self.revisions.advance();
    }

    /// Replaces the observed workers and records the events since the last observation.
    pub fn set_workers(&self, mut workers: Vec<Worker>) {
        workers.sort_by_key(|worker| (worker.cluster, worker.slot, worker.state_since, worker.id));
        let at = self.clock.now_us();
        let mut content = self.content.write();
        let is_same = worker_events::is_same_state(&content.workers, &workers);
        if !is_same {
            for event in worker_events::events(&content.workers, &workers, &content.desired, at) {
                content.history.push(event, EventHistory::WORKER_EVENTS_MAX);
            }
        }
        content.workers = workers.into();
        content.serving.clear();
        drop(content);
        if !is_same {
            self.revisions.advance();
        }
    }
}
