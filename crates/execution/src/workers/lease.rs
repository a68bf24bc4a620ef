//! What a statement runs on.

use std::fmt;
use std::sync::Arc;

use cluster::{Worker, WorkerId};
use datafusion::execution::memory_pool::MemoryPool;
use tokio_util::sync::CancellationToken;

use super::room::Room;
use crate::threads::Threads;

/// A statement's hold on a worker, or on those of a cluster whose workers are processes of their own: it counts as running there until
/// this is dropped. What it has in this process, threads and memory, it has as long.
pub struct Lease {
    pub(crate) threads: Arc<Threads>,
    memory: Arc<dyn MemoryPool>,
    on: On,
}

enum On {
    Room(Arc<Room>),
    Processes(Box<dyn Hold>),
}

/// Workers in processes of their own, which count as running a statement until this is dropped.
pub trait Hold: Send + Sync + fmt::Debug {
    /// Those that served the cluster when the statement began, by slot: at least one.
    fn workers(&self) -> &[Worker];

    /// Fires when one of them is ended with all that runs on it. One that dies does not fire it: whoever has a part there finds out.
    fn ended(&self) -> &CancellationToken;
}

impl Lease {
    pub(super) fn of(room: &Arc<Room>) -> Arc<Self> {
        room.enter();
        Arc::new(Self { threads: room.threads(), memory: room.pool(), on: On::Room(Arc::clone(room)) })
    }

    /// On the threads and in the memory of this process, for a cluster of others.
    pub(super) fn for_processes(threads: Arc<Threads>, memory: Arc<dyn MemoryPool>, hold: Box<dyn Hold>) -> Arc<Self> {
        Arc::new(Self { threads, memory, on: On::Processes(hold) })
    }

    /// The worker; the first of several.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        match &self.on {
            On::Room(room) => room.id,
            On::Processes(hold) => hold.workers().first().expect("somebody is held").id,
        }
    }

    /// The workers in processes of their own on which the statement may run, with their addresses; none where its worker is in this one.
    #[must_use]
    pub fn processes(&self) -> &[Worker] {
        match &self.on {
            On::Room(_) => &[],
            On::Processes(hold) => hold.workers(),
        }
    }

    /// Whether the worker was ended with all that runs on it.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.token().is_cancelled()
    }

    /// Completes when the worker is ended with all that runs on it.
    pub async fn ended(&self) {
        self.token().cancelled().await;
    }

    /// Fires when the worker is ended.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        self.token().child_token()
    }

    /// The memory that it runs in.
    pub(crate) fn memory(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(&self.memory)
    }

    fn token(&self) -> &CancellationToken {
        match &self.on {
            On::Room(room) => &room.ended,
            On::Processes(hold) => hold.ended(),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let On::Room(room) = &self.on {
            room.leave();
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("worker", &self.worker()).finish_non_exhaustive()
    }
}
