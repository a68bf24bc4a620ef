//! A statement's hold on its workers, and on threads and memory of this process.

use std::fmt;
use std::sync::Arc;

use cluster_model::{Worker, WorkerId};
use datafusion::execution::memory_pool::MemoryPool;
use tokio_util::sync::CancellationToken;

use crate::Threads;

/// A statement's hold on a worker, or on those of a cluster whose workers are processes of their own: it counts as running there until
/// this is dropped. What it has in this process, threads and memory, it has as long.
pub struct Lease {
    threads: Arc<Threads>,
    memory: Arc<dyn MemoryPool>,
    hold: Box<dyn Hold>,
}

/// Workers that count as running a statement until this is dropped.
pub trait Hold: Send + Sync + fmt::Debug {
    /// The worker; the first of several.
    fn worker(&self) -> WorkerId;

    /// The workers in processes of their own, by slot, that served the cluster when the statement began; none where its worker is in this
    /// process.
    fn processes(&self) -> &[Worker];

    /// Fires when one of them is ended with all that runs on it. One that dies does not fire it: whoever has a part there finds out.
    fn ended(&self) -> &CancellationToken;
}

impl Lease {
    /// On these threads and in this memory of the process, for as long as the hold is there.
    #[must_use]
    pub fn new(threads: Arc<Threads>, memory: Arc<dyn MemoryPool>, hold: Box<dyn Hold>) -> Arc<Self> {
        Arc::new(Self { threads, memory, hold })
    }

    /// The worker; the first of several.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.hold.worker()
    }

    /// The workers in processes of their own on which the statement may run, with their addresses; none where its worker is in this one.
    #[must_use]
    pub fn processes(&self) -> &[Worker] {
        self.hold.processes()
    }

    /// Whether the worker was ended with all that runs on it.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.hold.ended().is_cancelled()
    }

    /// Completes when the worker is ended with all that runs on it.
    pub async fn ended(&self) {
        self.hold.ended().cancelled().await;
    }

    /// Fires when the worker is ended.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        self.hold.ended().child_token()
    }

    /// The threads that its operators run on.
    #[must_use]
    pub fn threads(&self) -> &Arc<Threads> {
        &self.threads
    }

    /// The memory that it runs in.
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
