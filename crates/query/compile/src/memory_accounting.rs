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
    current: AtomicUsize,
    peak: AtomicUsize,
}

impl OperatorMemory {
    /// Returns an empty pool within the query's pool.
    pub(super) fn new(context: &TaskContext) -> Self {
        Self { query: Arc::clone(context.memory_pool()), current: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// Returns the peak of its reserved bytes.
    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        let now = self.current.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
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
        self.current.fetch_sub(shrink, Ordering::Relaxed);
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
        write!(f, "{} of {}", self.current.load(Ordering::Relaxed), self.query)
    }
}
