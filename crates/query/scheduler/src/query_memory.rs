//! Memory pool of one query, within the pool of all queries and limited by the session.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::common::Result as DfResult;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use types::{Condition, SqlError};

/// Memory of a query; empty before it runs.
#[derive(Debug, Default)]
pub struct QueryMemory(OnceLock<Arc<QueryPool>>);

/// Memory of a query at one moment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryUse {
    /// Currently reserved.
    pub current: usize,
    /// Peak so far.
    pub peak: usize,
    /// Limit by `kiln.query_memory`.
    pub limit: Option<usize>,
}

impl QueryMemory {
    /// Returns the runtime for a plan's operators: its memory pool is the query's own, within the pool of `runtime` and
    /// limited to `limit` bytes.
    #[must_use]
    pub fn limit_runtime(&self, runtime: &RuntimeEnv, limit: Option<usize>) -> Arc<RuntimeEnv> {
        let mut runtime = runtime.clone();
        let own = self.0.get_or_init(|| Arc::new(QueryPool::new(&runtime.memory_pool, limit)));
        runtime.memory_pool = Arc::<QueryPool>::clone(own);
        Arc::new(runtime)
    }

    /// Returns the current use and the peak.
    #[must_use]
    pub fn used(&self) -> MemoryUse {
        let used = |own: &Arc<QueryPool>| MemoryUse {
            current: own.shares.reserved(),
            peak: own.peak.load(Ordering::Relaxed),
            limit: own.limit,
        };
        self.0.get().map(used).unwrap_or_default()
    }

    /// Adds a hint to an out-of-memory error if the query's own limit caused it.
    #[must_use]
    pub fn add_limit_hint(&self, error: SqlError) -> SqlError {
        let is_its_own = self.0.get().is_some_and(|own| own.has_hit_limit.load(Ordering::Relaxed));
        if error.condition == Condition::OutOfMemory && is_its_own {
            return error.with_hint("The memory of a query is limited by \"kiln.query_memory\".");
        }
        error
    }
}

/// Memory pool of a query within the pool of all queries.
#[derive(Debug)]
struct QueryPool {
    parent: Arc<dyn MemoryPool>,
    limit: Option<usize>,
    /// Divides the limit equally among consumers that can spill.
    shares: FairSpillPool,
    peak: AtomicUsize,
    /// True once a reservation failed because of the limit.
    has_hit_limit: AtomicBool,
}

impl QueryPool {
    fn new(all: &Arc<dyn MemoryPool>, limit: Option<usize>) -> Self {
        Self {
            parent: Arc::clone(all),
            limit,
            shares: FairSpillPool::new(limit.unwrap_or(usize::MAX)),
            peak: AtomicUsize::new(0),
            has_hit_limit: AtomicBool::new(false),
        }
    }

    fn update_peak(&self) {
        self.peak.fetch_max(self.shares.reserved(), Ordering::Relaxed);
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &'static str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shares.register(consumer);
        self.parent.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shares.unregister(consumer);
        self.parent.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.shares.grow(reservation, additional);
        self.parent.grow(reservation, additional);
        self.update_peak();
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.shares.shrink(reservation, shrink);
        self.parent.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        let own = self.shares.try_grow(reservation, additional);
        own.inspect_err(|_| self.has_hit_limit.store(true, Ordering::Relaxed))?;
        let all = self.parent.try_grow(reservation, additional);
        all.inspect_err(|_| self.shares.shrink(reservation, additional))?;
        self.update_peak();
        Ok(())
    }

    /// Chosen so that limit minus reserved is what can still be reserved.
    fn reserved(&self) -> usize {
        let (Some(limit), MemoryLimit::Finite(most)) = (self.limit, self.memory_limit()) else {
            return self.parent.reserved();
        };
        let own_rest = limit.saturating_sub(self.shares.reserved());
        let rest = match self.parent.memory_limit() {
            MemoryLimit::Finite(all) => own_rest.min(all.saturating_sub(self.parent.reserved())),
            _ => own_rest,
        };
        most.saturating_sub(rest)
    }

    fn memory_limit(&self) -> MemoryLimit {
        match (self.limit, self.parent.memory_limit()) {
            (Some(own), MemoryLimit::Finite(all)) => MemoryLimit::Finite(own.min(all)),
            (Some(own), _) => MemoryLimit::Finite(own),
            (None, all) => all,
        }
    }
}

impl fmt::Display for QueryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.shares, self.parent)
    }
}
