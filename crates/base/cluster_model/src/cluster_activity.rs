//! Activity of a cluster, for load balancing and for suspending idle clusters.

/// Numbers of running and queued statements of a cluster, and the start of its idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterActivity {
    pub running: u32,
    pub queued: u32,
    /// Start of the idle time in microseconds since 1970 UTC; `None` if a statement runs or waits.
    pub idle_since: Option<i64>,
}
