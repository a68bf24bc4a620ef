//! Events of clusters and workers, as `sys.cluster_event` shows them.
//!
//! There are two histories. Changes of clusters are recorded in the desired state, in the same write as the change
//! itself. Events of workers are kept in memory only: a crash loop would write every second, and a restarted instance
//! observes its workers afresh.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// Kind of event. The names are stored, so never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Created,
    Replaced,
    Altered,
    Renamed,
    OwnerChanged,
    Suspended,
    Resumed,
    Dropped,
    Granted,
    Revoked,
    DefaultClustersSet,
    RoleForgotten,
    WorkerStarting,
    WorkerReady,
    WorkerDraining,
    WorkerHung,
    /// A hung worker answers again.
    WorkerRecovered,
    /// A worker ended as ordered.
    WorkerStopped,
    /// A worker ended on its own, hung, or did not join in time.
    WorkerFailed,
}

/// Event in the history of a cluster or worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterEvent {
    /// Microseconds since 1970 UTC.
    pub at: i64,
    /// Name of the cluster at that time; `None` for an event that concerns no single cluster.
    pub cluster: Option<String>,
    /// Name of the author at that time; `None` for the instance itself.
    #[serde(rename = "who")]
    pub author: Option<String>,
    #[serde(rename = "what")]
    pub kind: EventKind,
    /// Further details as text.
    pub detail: String,
}

/// Bounded list of the latest events, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventHistory {
    events: VecDeque<ClusterEvent>,
}

impl EventHistory {
    /// Number of changes kept with the desired state, some 200 KB.
    pub const CHANGES_MAX: usize = 1_000;
    /// Number of worker events kept in memory: enough for 3,000 workers to start and stop.
    pub const WORKER_EVENTS_MAX: usize = 10_000;

    /// Adds an event and drops the oldest if there are more than `max_events`.
    pub fn push(&mut self, event: ClusterEvent, max_events: usize) {
        self.events.push_back(event);
        while max_events < self.events.len() {
            self.events.pop_front();
        }
    }

    /// Iterates over the events, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ClusterEvent> {
        self.events.iter()
    }

    /// Merges the events of both by time, oldest first; at equal times, those of `self` come first.
    #[must_use]
    pub fn merged(&self, other: &EventHistory) -> Vec<ClusterEvent> {
        let mut all: Vec<ClusterEvent> = self.iter().chain(other.iter()).cloned().collect();
        all.sort_by_key(|event| event.at);
        all
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Replaced => "replaced",
            Self::Altered => "altered",
            Self::Renamed => "renamed",
            Self::OwnerChanged => "owner_changed",
            Self::Suspended => "suspended",
            Self::Resumed => "resumed",
            Self::Dropped => "dropped",
            Self::Granted => "granted",
            Self::Revoked => "revoked",
            Self::DefaultClustersSet => "default_clusters_set",
            Self::RoleForgotten => "role_forgotten",
            Self::WorkerStarting => "worker_starting",
            Self::WorkerReady => "worker_ready",
            Self::WorkerDraining => "worker_draining",
            Self::WorkerHung => "worker_hung",
            Self::WorkerRecovered => "worker_recovered",
            Self::WorkerStopped => "worker_stopped",
            Self::WorkerFailed => "worker_failed",
        })
    }
}
