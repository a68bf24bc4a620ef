//! Last known state of a control plane, in memory: desired state, observed workers and history.

use std::collections::HashMap;
use std::sync::Arc;

use cluster_model::desired::{ClusterId, DesiredState};
use cluster_model::events::{ClusterEvent, History};
use cluster_model::reconcile::Settings;
use cluster_model::serving::{Phase, phase, serving};
use cluster_model::worker::Worker;
use parking_lot::RwLock;
use types::Clock;

use super::observed;
use crate::revisions::Revisions;

/// Last known state of a control plane, with a change counter.
#[derive(Debug)]
pub struct Known {
    settings: Settings,
    clock: Arc<dyn Clock>,
    revisions: Revisions,
    content: RwLock<Content>,
}

#[derive(Debug)]
struct Content {
    desired: Arc<DesiredState>,
    workers: Arc<[Worker]>,
    /// Serving workers by cluster, computed on demand and cleared when one of the fields above changes.
    serving: HashMap<ClusterId, Arc<[Worker]>>,
    /// Events of workers; those of clusters are in the desired state.
    history: History,
}

impl Known {
    /// Creates a state without workers.
    #[must_use]
    pub fn new(desired: DesiredState, settings: Settings, clock: Arc<dyn Clock>) -> Known {
        let content = Content {
            desired: Arc::new(desired),
            workers: Arc::from([]),
            serving: HashMap::new(),
            history: History::default(),
        };
        Known { settings, clock, revisions: Revisions::default(), content: RwLock::new(content) }
    }

    /// Returns the settings of reconciliation.
    #[must_use]
    pub fn settings(&self) -> &Settings {
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
        let found = serving(state, &content.workers, self.clock.monotonic(), &self.settings);
        let found: Arc<[Worker]> = found.into_iter().cloned().collect();
        content.serving.insert(cluster, Arc::clone(&found));
        found
    }

    /// Returns the phase of a cluster; see [`super::ControlPlane::phase`].
    #[must_use]
    pub fn phase(&self, cluster: ClusterId) -> Option<Phase> {
        phase(&self.desired(), cluster, &self.workers(), self.clock.monotonic(), &self.settings)
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
    pub fn should_be(&self, desired: DesiredState) {
        let mut content = self.content.write();
        content.desired = Arc::new(desired);
        content.serving.clear();
        drop(content);
        self.revisions.advance();
    }

    /// Replaces the observed workers and records the events since the last observation.
    pub fn are_there(&self, mut workers: Vec<Worker>) {
        workers.sort_by_key(|worker| (worker.cluster, worker.slot, worker.since, worker.id));
        let at = self.clock.now_us();
        let mut content = self.content.write();
        let is_same = observed::is_same(&content.workers, &workers);
        if !is_same {
            for event in observed::events(&content.workers, &workers, &content.desired, at) {
                content.history.push(event, History::WORKERS_KEPT);
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
