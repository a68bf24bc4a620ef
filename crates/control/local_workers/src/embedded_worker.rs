//! Resources of one embedded worker: threads, memory, and the number of running statements.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cluster_model::{Worker, WorkerId};
use datafusion::execution::memory_pool::MemoryPool;
use parking_lot::RwLock;
use scheduler::{Lease, QueryThreads, WorkerMemory, WorkerRegistration};
use tokio_util::sync::CancellationToken;

/// Resources of a worker. When it gets new threads, the old ones end with the last statement that runs on them.
pub(super) struct EmbeddedWorker {
    id: WorkerId,
    /// Threads and their number.
    threads: RwLock<(Arc<QueryThreads>, usize)>,
    memory: Arc<WorkerMemory>,
    running: AtomicU32,
    cancellation: CancellationToken,
}

impl EmbeddedWorker {
    pub(super) fn new(id: WorkerId, threads: Arc<QueryThreads>, cores: usize, memory: Arc<WorkerMemory>) -> Arc<Self> {
        let (running, ended) = (AtomicU32::new(0), CancellationToken::new());
        Arc::new(Self { id, threads: RwLock::new((threads, cores)), memory, running, cancellation: ended })
    }

    pub(super) fn threads(&self) -> Arc<QueryThreads> {
        Arc::clone(&self.threads.read().0)
    }

    pub(super) fn cores(&self) -> usize {
        self.threads.read().1
    }

    pub(super) fn set_threads(&self, threads: Arc<QueryThreads>, cores: usize) {
        let old = std::mem::replace(&mut *self.threads.write(), (threads, cores));
        drop(old);
    }

    pub(super) fn set_memory(&self, limit: Option<usize>) {
        self.memory.set_limit(limit);
    }

    pub(super) fn memory_used(&self) -> u64 {
        self.memory.used() as u64
    }

    /// Returns the number of statements with a lease.
    pub(super) fn running(&self) -> u32 {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns a lease for a statement, which counts as running here until it drops the lease.
    pub(super) fn lease(self: &Arc<Self>) -> Arc<Lease> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Lease::new(
            self.threads(),
            Arc::clone(&self.memory) as Arc<dyn MemoryPool>,
            Box::new(StatementGuard(Arc::clone(self))),
        )
    }

    /// Cancels all statements that run here.
    pub(super) fn cancel_statements(&self) {
        self.cancellation.cancel();
    }
}

/// Guard that counts a statement as running.
struct StatementGuard(Arc<EmbeddedWorker>);

impl WorkerRegistration for StatementGuard {
    fn worker(&self) -> WorkerId {
        self.0.id
    }

    fn worker_processes(&self) -> &[Worker] {
        &[]
    }

    fn shutdown_token(&self) -> &CancellationToken {
        &self.0.cancellation
    }
}

impl Drop for StatementGuard {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for StatementGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StatementGuard").field(&self.0.id).finish()
    }
}
