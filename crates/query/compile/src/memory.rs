//! Memory that a program takes, counted for the operators that it stands for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::Result as DfResult;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// Memory, none yet.
pub(super) fn reservation(memory: &Arc<dyn MemoryPool>) -> MemoryReservation {
    MemoryConsumer::new("engine").register(memory)
}

/// What one operator has of its query's memory.
#[derive(Debug)]
pub(super) struct OperatorMemory {
    query: Arc<dyn MemoryPool>,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl OperatorMemory {
    pub(super) fn of(context: &TaskContext) -> Self {
        Self { query: Arc::clone(context.memory_pool()), now: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// Bytes that it had at most.
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
