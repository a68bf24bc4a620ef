//! A worker as it was last observed, and what it is told to be.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::desired::ClusterId;

/// Identity of one life of a worker: who replaces it has another id. Random, and never given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub u64);

/// A part of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Thousandths of a core.
    pub millicores: u32,
    pub memory_bytes: u64,
}

/// What a worker is told to be. A new share or percentage reaches it while it runs; other hardware needs another worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    pub hardware_instance: String,
    pub share: Resources,
    /// How much of its disk a worker may spill to; no limit of its own where `None`.
    pub max_spill_pct: Option<u8>,
    /// How much of its disk a worker's cache may take; no limit of its own where `None`.
    pub max_cache_pct: Option<u8>,
}

/// Where a worker is in its life, as `sys.worker` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkerState {
    /// Told to start, not joined yet.
    Starting,
    /// Has joined and can work.
    Ready,
    /// Ends what it does and gets nothing new.
    Draining,
    /// Does not run any more. Kept for a while: how often a slot's workers failed decides when the next one starts.
    Gone,
}

/// A worker as it was last observed. Times are of the observer's monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: WorkerId,
    pub cluster: ClusterId,
    /// Its place in the cluster, from 0: whoever replaces it takes it over, with what it owns.
    pub slot: u32,
    /// What it was last told to be.
    pub spec: WorkerSpec,
    pub state: WorkerState,
    /// When it came to this state.
    pub since: Duration,
    /// When it last answered; when it was started, before it has.
    pub heard: Duration,
    /// It was told to be hung and has not answered since.
    pub hung: bool,
    /// It is gone without having been told to, or because it hung or did not come up.
    pub failed: bool,
    /// Others take over what is hot in its cache: where it is to go it stays until they have.
    pub hands_over: bool,
    /// The version that it runs, known when it has joined.
    pub version: Option<String>,
    /// Where other workers reach it, known when it has joined.
    pub address: Option<String>,
    /// Statements that have a part running on it.
    pub running: u32,
    pub cache_bytes: u64,
    /// Why it is gone, in words, where that is known.
    pub detail: Option<String>,
}

impl Worker {
    /// Whether it is known to run another version than `version`.
    #[must_use]
    pub fn is_other_version(&self, version: &str) -> bool {
        self.version.as_deref().is_some_and(|own| own != version)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for WorkerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
            Self::Gone => "gone",
        })
    }
}
