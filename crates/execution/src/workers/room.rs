//! One worker: its threads, its memory, and how many statements it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cluster::WorkerId;
use datafusion::execution::memory_pool::MemoryPool;
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use super::memory::WorkerMemory;
use crate::threads::Threads;

/// What a worker has. It may get other threads: those that it had go with the last statement that runs on them.
pub(super) struct Room {
    pub(super) id: WorkerId,
    threads: RwLock<(Arc<Threads>, usize)>,
    pub(super) memory: Arc<WorkerMemory>,
    running: AtomicU32,
    pub(super) ended: CancellationToken,
}

impl Room {
    pub(super) fn new(id: WorkerId, threads: Arc<Threads>, cores: usize, memory: Arc<WorkerMemory>) -> Arc<Self> {
        let (running, ended) = (AtomicU32::new(0), CancellationToken::new());
        Arc::new(Self { id, threads: RwLock::new((threads, cores)), memory, running, ended })
    }

    pub(super) fn threads(&self) -> Arc<Threads> {
        Arc::clone(&self.threads.read().0)
    }

    pub(super) fn cores(&self) -> usize {
        self.threads.read().1
    }

    pub(super) fn set_threads(&self, threads: Arc<Threads>, cores: usize) {
        let old = std::mem::replace(&mut *self.threads.write(), (threads, cores));
        drop(old);
    }

    pub(super) fn set_memory(&self, limit: Option<usize>) {
        self.memory.set_limit(limit);
    }

    pub(super) fn memory_used(&self) -> u64 {
        self.memory.used() as u64
    }

    /// Statements that hold a lease.
    pub(super) fn running(&self) -> u32 {
        self.running.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whatever runs here stops.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    pub(super) fn pool(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(&self.memory) as Arc<dyn MemoryPool>
    }
}
