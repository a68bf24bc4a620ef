//! Workers in the server's own process: each has query threads and a share of the memory, and all read by the same caches.
//!
//! Never knows what a statement does: it hands out a [`scheduler::Lease`] on a worker, which the statement drops when it ends.
//!
//! Start at [`EmbeddedWorkers`], which makes them as a control plane says; `room.rs` is what one of them has, `state_file.rs` where the clusters that
//! there should be are kept.

mod room;
mod state_file;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use cluster_model::{StopReason, Worker, WorkerId, WorkerSpec, WorkerState};
use control_plane::{StartWorker, WorkerHost};
use datafusion::execution::memory_pool::MemoryPool;
use parking_lot::Mutex;
use room::Room;
use scheduler::{Hold, Lease, Threads, WorkerMemory};
pub use state_file::StateFile;
use types::{Clock, Random};

/// A test has a server say that it and the workers in its process are of this version.
const TEST_VERSION: &str = "KILN_TEST_VERSION";

/// More workers than this are not started in one process: each has threads and files of the system.
const WORKERS_MAX: usize = 256;

/// The workers of this process.
pub struct EmbeddedWorkers {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    version: String,
    /// What the process has, for what runs without a worker; and for the first worker that has all of the cores.
    threads: Arc<Threads>,
    cores: usize,
    memory: Arc<dyn MemoryPool>,
    memory_bytes: u64,
    hosted: Mutex<Hosted>,
}

#[derive(Default)]
struct Hosted {
    workers: BTreeMap<WorkerId, One>,
    /// Who has the process's own threads.
    threads_of: Option<WorkerId>,
}

struct One {
    seen: Worker,
    /// `None` once it is gone.
    room: Option<Arc<Room>>,
}

impl EmbeddedWorkers {
    /// No worker yet, in a process of so many cores and so much memory.
    #[must_use]
    pub fn new(
        threads: Arc<Threads>,
        cores: usize,
        memory: Arc<dyn MemoryPool>,
        memory_bytes: u64,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        let version = std::env::var(TEST_VERSION).unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned());
        Arc::new(Self { clock, random, version, threads, cores, memory, memory_bytes, hosted: Mutex::default() })
    }

    /// The version of this process, which all its workers run.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Cores and memory of this process, which its workers share.
    #[must_use]
    pub fn machine(&self) -> cluster_model::Resources {
        let millicores = u32::try_from(self.cores * 1_000).unwrap_or(u32::MAX);
        cluster_model::Resources { millicores, memory_bytes: self.memory_bytes }
    }

    /// The least busy of these workers, for a statement; `None` where none of them takes statements any more.
    #[must_use]
    pub fn lease(&self, workers: &[Worker]) -> Option<Arc<Lease>> {
        // Under the lock, so that who drains is not seen idle in between.
        let hosted = self.hosted.lock();
        let able = workers.iter().filter_map(|worker| {
            let one = hosted.workers.get(&worker.id).filter(|one| one.seen.state == WorkerState::Ready)?;
            one.room.as_ref()
        });
        let least = able.min_by_key(|room| room.running())?;
        Some(least.lease())
    }

    /// What a statement for a cluster of other processes has of this one: the threads and memory of what runs without a worker.
    #[must_use]
    pub fn lease_for(&self, hold: Box<dyn Hold>) -> Arc<Lease> {
        Lease::new(Arc::clone(&self.threads), Arc::clone(&self.memory), hold)
    }

    /// Bytes of memory that a worker's statements have.
    #[must_use]
    pub fn memory_used(&self, worker: WorkerId) -> u64 {
        let hosted = self.hosted.lock();
        let room = hosted.workers.get(&worker).and_then(|one| one.room.as_ref());
        room.map_or(0, |room| room.memory_used())
    }

    /// Threads for a worker, which are the process's own where it has all cores and nobody else has them.
    fn threads_for(&self, id: WorkerId, cores: usize, hosted: &mut Hosted) -> io::Result<Arc<Threads>> {
        let may_have_own = hosted.threads_of.is_none_or(|other| other == id);
        if self.cores <= cores && may_have_own {
            hosted.threads_of = Some(id);
            return Ok(Arc::clone(&self.threads));
        }
        let started = Threads::start(cores, &self.clock)?;
        if hosted.threads_of == Some(id) {
            hosted.threads_of = None;
        }
        Ok(Arc::new(started))
    }

    fn room(&self, id: WorkerId, spec: &WorkerSpec, hosted: &mut Hosted) -> Result<Arc<Room>, String> {
        let living = hosted.workers.values().filter(|one| one.room.is_some()).count();
        if WORKERS_MAX <= living {
            return Err(format!("the process has {WORKERS_MAX} workers already"));
        }
        let cores = cores(spec);
        let threads =
            self.threads_for(id, cores, hosted).map_err(|error| format!("could not start threads: {error}"))?;
        let memory = WorkerMemory::new(Arc::clone(&self.memory), self.limit(spec));
        Ok(Room::new(id, threads, cores, memory))
    }

    /// `None` where it may have all that there is.
    fn limit(&self, spec: &WorkerSpec) -> Option<usize> {
        let bytes = spec.share.memory_bytes;
        (bytes < self.memory_bytes).then(|| usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

/// Threads that a worker needs for its share of the cores.
fn cores(spec: &WorkerSpec) -> usize {
    usize::try_from(spec.share.millicores.div_ceil(1_000)).unwrap_or(usize::MAX).max(1)
}

impl WorkerHost for EmbeddedWorkers {
    /// Threads are there at once, so it is ready when it is first observed.
    fn start(&self, worker: &StartWorker) {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let mut id = WorkerId(self.random.next_u64());
        while hosted.workers.contains_key(&id) {
            id = WorkerId(self.random.next_u64());
        }
        let mut seen = Worker {
            id,
            cluster: worker.cluster,
            slot: worker.slot,
            spec: worker.spec.clone(),
            state: WorkerState::Ready,
            since: now,
            heard: now,
            hung: false,
            failed: false,
            hands_over: false,
            version: Some(self.version.clone()),
            address: None,
            running: 0,
            cache_bytes: 0,
            detail: None,
        };
        let room = self.room(id, &worker.spec, &mut hosted);
        if let Err(reason) = &room {
            tracing::warn!(reason, cluster = %worker.cluster, slot = worker.slot, "a worker cannot be started");
            (seen.state, seen.failed, seen.detail) = (WorkerState::Gone, true, Some(reason.clone()));
        }
        hosted.workers.insert(id, One { seen, room: room.ok() });
    }

    fn configure(&self, worker: WorkerId, spec: &WorkerSpec) {
        let mut hosted = self.hosted.lock();
        let Some(room) = hosted.workers.get(&worker).and_then(|one| one.room.clone()) else { return };
        let cores = cores(spec);
        if cores != room.cores() {
            match self.threads_for(worker, cores, &mut hosted) {
                Ok(threads) => room.set_threads(threads, cores),
                Err(error) => {
                    // It keeps what it has, and is told again.
                    tracing::warn!(%error, %worker, "a worker's threads cannot be started");
                    return;
                }
            }
        }
        room.set_memory(self.limit(spec));
        if let Some(one) = hosted.workers.get_mut(&worker) {
            one.seen.spec = spec.clone();
        }
    }

    fn drain(&self, worker: WorkerId) {
        let now = self.clock.monotonic();
        if let Some(one) = self.hosted.lock().workers.get_mut(&worker)
            && matches!(one.seen.state, WorkerState::Starting | WorkerState::Ready)
        {
            (one.seen.state, one.seen.since) = (WorkerState::Draining, now);
        }
    }

    fn mark_hung(&self, worker: WorkerId) {
        if let Some(one) = self.hosted.lock().workers.get_mut(&worker) {
            one.seen.hung = true;
        }
    }

    fn stop(&self, worker: WorkerId, reason: StopReason) {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let Some(room) = hosted.workers.get_mut(&worker).and_then(|one| one.room.take()) else { return };
        if hosted.threads_of == Some(worker) {
            hosted.threads_of = None;
        }
        if let Some(One { seen, .. }) = hosted.workers.get_mut(&worker) {
            (seen.state, seen.since, seen.running) = (WorkerState::Gone, now, 0);
            (seen.failed, seen.detail) = (reason.is_failure(), Some(reason.to_string()));
        }
        drop(hosted);
        // Who is told so may ask for another worker at once.
        room.end();
    }

    fn forget(&self, worker: WorkerId) {
        self.hosted.lock().workers.retain(|id, one| *id != worker || one.room.is_some());
    }

    fn observe(&self) -> Vec<Worker> {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let observed = hosted.workers.values_mut().map(|one| {
            if let Some(room) = &one.room {
                // It lives in the thread that asks.
                (one.seen.heard, one.seen.hung, one.seen.running) = (now, false, room.running());
            }
            one.seen.clone()
        });
        observed.collect()
    }
}

impl std::fmt::Debug for EmbeddedWorkers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedWorkers")
            .field("cores", &self.cores)
            .field("memory_bytes", &self.memory_bytes)
            .finish_non_exhaustive()
    }
}
