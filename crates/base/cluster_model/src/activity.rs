//! How much goes on at a cluster: what its choice, and its falling asleep, are decided by.

/// How much is going on at a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    pub running: u32,
    pub queued: u32,
    /// Since when nothing runs or waits, in microseconds since 1970 UTC; `None` where something does.
    pub idle_since: Option<i64>,
}
