//! Workers: identity, specification and last observed state.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::desired_state::{ClusterId, WorkerOptions};

/// Id of a worker. Random and never reused; the worker that replaces another has a new id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub u64);

/// Share of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Thousandths of a core.
    pub millicores: u32,
    pub memory_bytes: u64,
}

/// Specification of a worker. A running worker accepts a new share and new options; other hardware needs a new worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// Name of the hardware instance.
    pub hardware_instance: String,
    /// Cores and memory.
    pub share: Resources,
    #[serde(flatten)]
    pub options: WorkerOptions,
}

/// Lifecycle state of a worker, as `sys.worker` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkerState {
    /// Started, but not joined yet.
    Starting,
    /// Joined and able to run statements.
    Ready,
    /// Finishing its statements; gets no new ones.
    Draining,
    /// Ended. Remembered for a while, because the number of a slot's failures decides when its next worker starts.
    Gone,
}

/// Last observed state of a worker. Times are of the observer's monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: WorkerId,
    pub cluster: ClusterId,
    /// Number of its slot in the cluster, from 0. Its replacement gets the same slot and owns the same parts.
    pub slot: u32,
    /// Specification that was last applied.
    pub spec: WorkerSpec,
    pub state: WorkerState,
    /// Time of the last change of `state`.
    pub state_since: Duration,
    /// Time of the last heartbeat, or of the start before the first one.
    pub last_heartbeat: Duration,
    /// True if it was marked as hung and has not answered since.
    pub hung: bool,
    /// True if it ended on its own, hung, or did not join in time.
    pub failed: bool,
    /// True while other workers fetch warm blocks from its cache, which delays its removal.
    pub is_handing_over: bool,
    /// Version of its program; `None` before it has joined.
    pub version: Option<String>,
    /// Task address for other workers; `None` before it has joined.
    pub address: Option<String>,
    /// Number of statements that have a part running on it.
    pub running: u32,
    /// Bytes of its cache in memory.
    pub cache_bytes: u64,
    /// Explanation of its state, such as the reason for its end.
    pub detail: Option<String>,
}

impl Worker {
    /// Whether its version is known and differs from `version`.
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
