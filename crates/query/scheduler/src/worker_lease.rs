//! Lease of workers by a running statement.

use std::fmt;
use std::sync::Arc;

use cluster_model::{Worker, WorkerId};
use datafusion::execution::memory_pool::MemoryPool;
use tokio_util::sync::CancellationToken;

use crate::QueryThreads;

/// A statement's lease of a worker, or of all workers of a cluster whose workers are processes. The statement counts as
/// running there until the lease is dropped; threads and memory of this process stay available as long.
pub struct Lease {
    threads: Arc<QueryThreads>,
    memory: Arc<dyn MemoryPool>,
    registration: Box<dyn WorkerRegistration>,
}

/// Registration of a statement with its workers, which lasts until it is dropped.
pub trait WorkerRegistration: Send + Sync + fmt::Debug {
    /// Returns the id of the worker, or of the first one.
    fn worker(&self) -> WorkerId;

    /// Returns the worker processes that served the cluster when the statement began, by slot; none if the worker is in
    /// this process.
    fn worker_processes(&self) -> &[Worker];

    /// Returns the token that is cancelled when one of the workers is shut down with everything that runs on it. A
    /// crash does not cancel it: statements notice that themselves.
    fn shutdown_token(&self) -> &CancellationToken;
}

impl Lease {
    /// Returns a lease with the threads and memory of this process that the statement uses.
    #[must_use]
    pub fn new(
        threads: Arc<QueryThreads>,
        memory: Arc<dyn MemoryPool>,
        hold: Box<dyn WorkerRegistration>,
    ) -> Arc<Self> {
        Arc::new(Self { threads, memory, registration: hold })
    }

    /// Returns the id of the worker, or of the first one.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.registration.worker()
    }

    /// Returns the worker processes on which the statement may run, with their addresses; none if the worker is in this
    /// process.
    #[must_use]
    pub fn worker_processes(&self) -> &[Worker] {
        self.registration.worker_processes()
    }

    /// Returns whether the worker was shut down with everything that runs on it.
    #[must_use]
    pub fn is_worker_shut_down(&self) -> bool {
        self.registration.shutdown_token().is_cancelled()
    }

    /// Waits until the worker is shut down with everything that runs on it.
    pub async fn wait_for_shutdown(&self) {
        self.registration.shutdown_token().cancelled().await;
    }

    /// Returns a token that is cancelled when the worker is shut down.
    #[must_use]
    pub fn child_shutdown_token(&self) -> CancellationToken {
        self.registration.shutdown_token().child_token()
    }

    /// Returns the threads that operators run on.
    #[must_use]
    pub fn threads(&self) -> &Arc<QueryThreads> {
        &self.threads
    }

    /// Returns the memory pool for operators.
    #[must_use]
    pub fn memory(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(&self.memory)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("worker", &self.worker()).finish_non_exhaustive()
    }
}
