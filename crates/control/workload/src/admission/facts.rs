//! What is said about an admission: its limits, what goes on, why somebody does not run.

use std::time::Duration;

use cluster_model::desired::WlmProfile;
use types::{Oid, QueryId};

/// How many statements a cluster has at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// That run.
    pub running: u32,
    /// That wait; more are refused.
    pub queued: u32,
}

impl Default for Limits {
    /// As the WLM profile `default` has it: 100 run, and whoever comes may wait.
    fn default() -> Self {
        Limits { running: WlmProfile::RUNNING, queued: u32::MAX }
    }
}

/// Whether statements are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Open,
    /// All wait: the cluster has no worker at the moment, but will.
    Holding,
    /// None may come, and none may wait: the cluster is dropped, or sleeps and is not to be woken.
    Closed,
}

/// Why a statement does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the statement was cancelled while it waited")]
    Cancelled,
    #[error("{limit} statements wait for the cluster already")]
    QueueFull { limit: u32 },
    #[error("the cluster takes no statements any more")]
    Closed,
}

/// What came of all requests so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub admitted: u64,
    /// Of those, who had to wait.
    pub waited: u64,
    /// How long those waited together.
    pub wait: Duration,
    pub longest_wait: Duration,
    pub cancelled: u64,
    /// For a full queue or a closed gate.
    pub refused: u64,
}

/// A statement that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    pub statement: QueryId,
    pub user: Oid,
    pub waited: Duration,
}

/// Everything about an admission at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub limits: Limits,
    pub mode: Mode,
    pub running: u32,
    /// In the order in which they will go.
    pub queued: Vec<Queued>,
    pub totals: Totals,
}
