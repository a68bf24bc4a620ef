//! What a control plane knows: what should be, who is there, and what happened. Asked by statements, so that it answers from memory.

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

/// What is known, and a number that grows with each change of it.
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
    /// Who serves which cluster, as far as somebody has asked since the two above were new.
    serving: HashMap<ClusterId, Arc<[Worker]>>,
    /// What happened to workers; what happened to clusters is in the desired state.
    history: History,
}

impl Known {
    /// What should be, and nobody there yet.
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

    /// How patient its control plane is.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What should be.
    #[must_use]
    pub fn desired(&self) -> Arc<DesiredState> {
        Arc::clone(&self.content.read().desired)
    }

    /// Who is there.
    #[must_use]
    pub fn workers(&self) -> Arc<[Worker]> {
        Arc::clone(&self.content.read().workers)
    }

    /// See [`super::ControlPlane::serving`].
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

    /// See [`super::ControlPlane::phase`].
    #[must_use]
    pub fn phase(&self, cluster: ClusterId) -> Option<Phase> {
        phase(&self.desired(), cluster, &self.workers(), self.clock.monotonic(), &self.settings)
    }

    /// See [`super::ControlPlane::events`].
    #[must_use]
    pub fn events(&self) -> Vec<ClusterEvent> {
        let content = self.content.read();
        content.desired.history().merged(&content.history)
    }

    /// See [`super::ControlPlane::revisions`].
    #[must_use]
    pub fn revisions(&self) -> &Revisions {
        &self.revisions
    }

    /// From now on this should be.
    pub fn should_be(&self, desired: DesiredState) {
        let mut content = self.content.write();
        content.desired = Arc::new(desired);
        content.serving.clear();
        drop(content);
        self.revisions.advance();
    }

    /// These workers are there now. What has happened to them since is remembered.
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
