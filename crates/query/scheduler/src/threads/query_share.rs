//! Thread time and priority of a query.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use types::QueryId;

/// Priority of a query by `kiln.priority`: its share of the threads relative to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Priority {
    /// A quarter of the share of a normal query.
    Low,
    #[default]
    Normal,
    /// Four times the share of a normal query.
    High,
}

impl Priority {
    /// Returns the weight of the priority.
    pub(super) fn weight(self) -> u64 {
        match self {
            Self::Low => 1,
            Self::Normal => 4,
            Self::High => 16,
        }
    }
}

/// Number of levels of [`Queue`](super::turn_queue::Queue), by the age of queries.
pub(super) const LEVELS: u8 = 5;

/// Thread time per unit of weight up to which a query is on level 0: 100 ms for a normal one. Each further level ends
/// at four times the time of the previous one.
const LEVEL_TIME: Duration = Duration::from_millis(25);

/// First level of old queries, which yield early to young ones.
pub(super) const OLD_LEVEL: u8 = 2;

/// Thread time and priority of one query. Modified under the lock that grants turns.
#[derive(Debug, Default)]
pub struct QueryShare {
    query: Option<QueryId>,
    priority: Priority,
    thread_time_ns: AtomicU64,
    /// Virtual time of the query: all queries of a level advance alike in it (stride scheduling, Waldspurger 1995).
    virtual_ns: AtomicU64,
    /// Level in which `passed` was last advanced.
    level: AtomicU8,
}

impl QueryShare {
    /// Returns the share of a query that has not run yet.
    #[must_use]
    pub fn new(priority: Priority) -> Self {
        Self { priority, ..Self::default() }
    }

    /// Sets the id of the query.
    #[must_use]
    pub fn with_query(self, query: QueryId) -> Self {
        Self { query: Some(query), ..self }
    }

    /// Returns the id of the query; `None` for background work.
    #[must_use]
    pub fn query(&self) -> Option<QueryId> {
        self.query
    }

    /// Returns the priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Returns the thread time used so far.
    #[must_use]
    pub fn thread_time(&self) -> Duration {
        Duration::from_nanos(self.thread_time_ns.load(Ordering::Relaxed))
    }

    /// Returns the level. A query with little thread time is likely to end soon: most queries are short, and clients
    /// notice their latency.
    pub(super) fn level(&self) -> u8 {
        let youth = LEVEL_TIME * u32::try_from(self.priority.weight()).expect("weights are small");
        let used = self.thread_time();
        (0..LEVELS - 1).find(|level| used < youth * 4_u32.pow((*level).into())).unwrap_or(LEVELS - 1)
    }

    /// Returns whether old queries yield early to this one.
    pub(super) fn is_young(&self) -> bool {
        self.level() < OLD_LEVEL
    }

    /// Advances the virtual time to at least `floor`, that of the level, and returns it. A query that is new on the
    /// level, or was idle, cannot claim time from the past.
    pub(super) fn advance_to(&self, level: u8, floor: u64) -> u64 {
        let is_new = self.level.swap(level, Ordering::Relaxed) != level;
        let passed = self.virtual_ns.load(Ordering::Relaxed);
        let passed = if is_new { floor } else { passed.max(floor) };
        self.virtual_ns.store(passed, Ordering::Relaxed);
        passed
    }

    /// Adds thread time.
    pub(super) fn add_thread_time(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.thread_time_ns.fetch_add(ns, Ordering::Relaxed);
        self.virtual_ns
            .fetch_add(ns.saturating_mul(Priority::High.weight()) / self.priority.weight(), Ordering::Relaxed);
    }
}
