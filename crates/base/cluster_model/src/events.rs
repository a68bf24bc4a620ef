//! What happened to clusters and workers, as `sys.cluster_event` shows it, and the last part of it in memory.
//!
//! There are two histories. That of changes lies in the desired state: it is written with the change, in one write, so there is no change
//! without its record. That of workers is in memory alone: a crash loop would write once a second, and after a start of the instance its
//! workers are observed anew.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// What happened. Names are stored: never reuse one.
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
    /// A worker that hung answers again.
    WorkerRecovered,
    /// A worker is gone that was told to go.
    WorkerStopped,
    /// A worker is gone that was not told to, or did not come up.
    WorkerFailed,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterEvent {
    /// Microseconds since 1970 UTC.
    pub at: i64,
    /// The cluster by the name that it had; `None` where it is no one cluster's.
    pub cluster: Option<String>,
    /// Who made it happen, by the name at the time; the instance itself where `None`.
    pub who: Option<String>,
    pub what: EventKind,
    /// More of it in words.
    pub detail: String,
}

/// The last events, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History {
    events: VecDeque<ClusterEvent>,
}

impl History {
    /// How many changes are kept with the desired state: some 200 KB of it.
    pub const CHANGES_KEPT: usize = 1_000;
    /// How many events of workers are kept in memory: each of 3,000 workers coming and going.
    pub const WORKERS_KEPT: usize = 10_000;

    /// Adds an event and forgets the oldest where there are more than `kept`.
    pub fn push(&mut self, event: ClusterEvent, kept: usize) {
        self.events.push_back(event);
        while kept < self.events.len() {
            self.events.pop_front();
        }
    }

    /// All events that are kept, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ClusterEvent> {
        self.events.iter()
    }

    /// The events of both, oldest first; of the same moment, those of `self` first.
    #[must_use]
    pub fn merged(&self, other: &History) -> Vec<ClusterEvent> {
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
