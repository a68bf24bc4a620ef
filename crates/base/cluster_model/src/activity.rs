//! The activity of a cluster: statements choose a cluster by it, and an idle one is suspended by it.

/// The statements of a cluster, and since when it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Activity {
    pub running: u32,
    pub queued: u32,
    /// Since when nothing runs or waits, in microseconds since 1970 UTC; `None` where something does.
    pub idle_since: Option<i64>,
}
