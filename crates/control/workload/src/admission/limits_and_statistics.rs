//! Limits, modes, refusals and statistics of an admission control.

use std::time::Duration;

use cluster_model::desired_state::WlmProfile;
use types::{Oid, QueryId};

/// Limits on the statements of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most running statements.
    pub running: u32,
    /// Most waiting statements; more are refused.
    pub queued: u32,
}

impl Default for Limits {
    /// Returns the limits of the WLM profile `default`: 100 running statements and an unbounded queue.
    fn default() -> Self {
        Limits { running: WlmProfile::DEFAULT_MAX_RUNNING, queued: u32::MAX }
    }
}

/// Mode of an admission control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionMode {
    /// Statements are admitted up to the limit.
    Open,
    /// Statements wait, because the cluster has no worker yet.
    Holding,
    /// Statements are refused, because the cluster is dropped, or suspended without AUTO_RESUME.
    Closed,
}

/// Reason for refusing a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the statement was cancelled while it waited for admission")]
    Cancelled,
    #[error("the cluster's queue is full: {limit} statements are waiting")]
    QueueFull { limit: u32 },
    #[error("the cluster is suspended or dropped and accepts no statements")]
    Closed,
}

/// Counters of all requests so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdmissionStatistics {
    pub admitted: u64,
    /// Admitted statements that had to wait.
    pub waited: u64,
    /// Sum of their waiting times.
    pub total_wait: Duration,
    pub longest_wait: Duration,
    /// Statements that were cancelled, or whose client gave up, while they waited.
    pub cancelled: u64,
    /// Statements that were refused because of a full queue or the mode [`AdmissionMode::Closed`].
    pub refused: u64,
}

/// Waiting statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedStatement {
    pub statement: QueryId,
    pub user: Oid,
    pub waited: Duration,
}

/// State of an admission control at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionSnapshot {
    pub limits: Limits,
    pub mode: AdmissionMode,
    pub running: u32,
    /// Waiting statements in the order of their admission.
    pub queued: Vec<QueuedStatement>,
    pub totals: AdmissionStatistics,
}
