//! Accounts the memory of a fragment to the operators that it was compiled from.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// Returns an empty reservation.
pub(super) fn reservation(memory: &Arc<dyn MemoryPool>) -> MemoryReservation {
    MemoryConsumer::new("engine").register(memory)
}

/// Memory pool of one operator, within the pool of its query.
#[derive(Debug)]
pub(super) struct OperatorMemory {
    query: Arc<dyn MemoryPool>,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl OperatorMemory {
    /// Returns an empty pool within the query's pool.
    pub(super) fn of(context: &TaskContext) -> Self {
        Self { query: Arc::clone(context.memory_pool()), now: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// Returns the peak of its reserved bytes.
    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }
}

impl MemoryPool for OperatorMemory {
    fn name(&self) -> &'static str {
        "operator"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.query.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.query.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.query.grow(reservation, additional);
        self.add(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.query.shrink(reservation, shrink);
        self.now.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        self.query.try_grow(reservation, additional)?;
        self.add(additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.query.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.query.memory_limit()
    }
}

impl fmt::Display for OperatorMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.now.load(Ordering::Relaxed), self.query)
    }
}
