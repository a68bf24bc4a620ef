//! Time that a query has had on the threads, and its priority.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use types::QueryId;

/// `kiln.priority`: how much of the threads a query gets beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Priority {
    /// A quarter of a normal one's.
    Low,
    #[default]
    Normal,
    /// Four times a normal one's.
    High,
}

impl Priority {
    pub(super) fn weight(self) -> u64 {
        match self {
            Self::Low => 1,
            Self::Normal => 4,
            Self::High => 16,
        }
    }
}

/// How old a query is: which level of [`Queue`](super::queue::Queue) its tasks wait in.
pub(super) const LEVELS: u8 = 5;

/// For each unit of its weight a query is of level 0 while it has had no more than so much (a normal one 100 ms), and of each level after
/// that until it has had four times as much as in the one before.
const YOUTH: Duration = Duration::from_millis(25);

/// The first level of queries that stand back for those before it, not only in the order of turns.
pub(super) const OLD_LEVEL: u8 = 2;

/// One query's use of the threads. Changed where turns are given, by one at a time.
#[derive(Debug, Default)]
pub struct QueryShare {
    query: Option<QueryId>,
    priority: Priority,
    used_ns: AtomicU64,
    /// Time that it has had, in units in which the queries that take turns advance alike (stride scheduling, Waldspurger 1995).
    passed: AtomicU64,
    /// The level that `passed` was counted in last.
    level: AtomicU8,
}

impl QueryShare {
    /// Of a query that has not run yet.
    #[must_use]
    pub fn new(priority: Priority) -> Self {
        Self { priority, ..Self::default() }
    }

    /// The same, of this query.
    #[must_use]
    pub fn with_query(self, query: QueryId) -> Self {
        Self { query: Some(query), ..self }
    }

    /// The query; none for work in the background.
    #[must_use]
    pub fn query(&self) -> Option<QueryId> {
        self.query
    }

    /// What it gets beside others.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Thread time that it has had.
    #[must_use]
    pub fn used(&self) -> Duration {
        Duration::from_nanos(self.used_ns.load(Ordering::Relaxed))
    }

    /// The less it has had, the sooner it is likely to end: most queries are short, and who waits for one notices.
    pub(super) fn level(&self) -> u8 {
        let youth = YOUTH * u32::try_from(self.priority.weight()).expect("weights are small");
        let used = self.used();
        (0..LEVELS - 1).find(|level| used < youth * 4_u32.pow((*level).into())).unwrap_or(LEVELS - 1)
    }

    /// Whether others stand back for it.
    pub(super) fn is_young(&self) -> bool {
        self.level() < OLD_LEVEL
    }

    /// What it has had, in the time of a level whose queries have come to `floor`. One that is new there, or had nothing to do, has no claim
    /// to the time before.
    pub(super) fn catch_up(&self, level: u8, floor: u64) -> u64 {
        let is_new = self.level.swap(level, Ordering::Relaxed) != level;
        let passed = self.passed.load(Ordering::Relaxed);
        let passed = if is_new { floor } else { passed.max(floor) };
        self.passed.store(passed, Ordering::Relaxed);
        passed
    }

    pub(super) fn use_up(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.used_ns.fetch_add(ns, Ordering::Relaxed);
        self.passed.fetch_add(ns.saturating_mul(Priority::High.weight()) / self.priority.weight(), Ordering::Relaxed);
    }
}
