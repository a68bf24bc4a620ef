//! What a statement runs on.

use std::fmt;
use std::sync::Arc;

use cluster::WorkerId;
use datafusion::execution::memory_pool::MemoryPool;
use tokio_util::sync::CancellationToken;

use super::room::Room;
use crate::threads::Threads;

/// A statement's hold on a worker: it counts as running there until this is dropped, and has its threads and memory as long.
pub struct Lease {
    pub(crate) threads: Arc<Threads>,
    room: Arc<Room>,
}

impl Lease {
    pub(super) fn of(room: &Arc<Room>) -> Arc<Self> {
        room.enter();
        Arc::new(Self { threads: room.threads(), room: Arc::clone(room) })
    }

    /// The worker.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.room.id
    }

    /// Whether the worker was ended with all that runs on it.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.room.ended.is_cancelled()
    }

    /// Completes when the worker is ended with all that runs on it.
    pub async fn ended(&self) {
        self.room.ended.cancelled().await;
    }

    /// Fires when the worker is ended.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        self.room.ended.child_token()
    }

    /// The worker's memory.
    pub(crate) fn memory(&self) -> Arc<dyn MemoryPool> {
        self.room.pool()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.room.leave();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("worker", &self.worker()).finish_non_exhaustive()
    }
}
