//! Workers in the server's own process: each has query threads and a share of the memory, and all use the same caches.
//!
//! Statements get a [`scheduler::Lease`] on a worker, which they drop when they end; this crate does not know what they
//! do.
//!
//! [`EmbeddedWorkers`] is the worker host. `room.rs` has the resources of one worker, `state_file.rs` the file with the
//! desired state of the clusters.

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

/// Environment variable with which a test overrides the version of the server and its embedded workers.
const TEST_VERSION: &str = "KILN_TEST_VERSION";

/// Most workers in one process, because each takes threads and file descriptors.
const WORKERS_MAX: usize = 256;

/// Worker host for threads of this process.
pub struct EmbeddedWorkers {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    version: String,
    /// Query threads of the process, for statements without a worker and for the first worker with all cores.
    threads: Arc<Threads>,
    /// Number of query threads of the process.
    cores: usize,
    /// Query memory of the process.
    memory: Arc<dyn MemoryPool>,
    memory_bytes: u64,
    hosted: Mutex<Hosted>,
}

#[derive(Default)]
struct Hosted {
    workers: BTreeMap<WorkerId, One>,
    /// Worker that uses the process's own threads.
    threads_of: Option<WorkerId>,
}

/// Worker with its observed state and its resources.
struct One {
    seen: Worker,
    /// Resources; `None` once the worker has ended.
    room: Option<Arc<Room>>,
}

impl EmbeddedWorkers {
    /// Creates a host without workers, for a process with these threads and this memory.
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

    /// Returns the version of this process and thus of its workers.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns cores and memory of this process, which its workers share.
    #[must_use]
    pub fn machine(&self) -> cluster_model::Resources {
        let millicores = u32::try_from(self.cores * 1_000).unwrap_or(u32::MAX);
        cluster_model::Resources { millicores, memory_bytes: self.memory_bytes }
    }

    /// Returns a lease on the least busy of these workers; `None` if none of them is ready.
    #[must_use]
    pub fn lease(&self, workers: &[Worker]) -> Option<Arc<Lease>> {
        // Take the lease under the lock, so that a draining worker is not observed as idle in between.
        let hosted = self.hosted.lock();
        let able = workers.iter().filter_map(|worker| {
            let one = hosted.workers.get(&worker.id).filter(|one| one.seen.state == WorkerState::Ready)?;
            one.room.as_ref()
        });
        let least = able.min_by_key(|room| room.running())?;
        Some(least.lease())
    }

    /// Returns a lease for a statement on worker processes: threads and memory of this process for the part that runs
    /// here.
    #[must_use]
    pub fn lease_for(&self, hold: Box<dyn Hold>) -> Arc<Lease> {
        Lease::new(Arc::clone(&self.threads), Arc::clone(&self.memory), hold)
    }

    /// Returns the bytes of memory used by a worker's statements.
    #[must_use]
    pub fn memory_used(&self, worker: WorkerId) -> u64 {
        let hosted = self.hosted.lock();
        let room = hosted.workers.get(&worker).and_then(|one| one.room.as_ref());
        room.map_or(0, |room| room.memory_used())
    }

    /// Returns threads for a worker: those of the process if it has all cores and no other worker uses them, otherwise
    /// new ones.
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

    /// Creates the resources of a worker.
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

    /// Returns a worker's memory limit; `None` if it may use all memory of the process.
    fn limit(&self, spec: &WorkerSpec) -> Option<usize> {
        let bytes = spec.share.memory_bytes;
        (bytes < self.memory_bytes).then(|| usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

/// Returns the number of threads for a worker's share of the cores.
fn cores(spec: &WorkerSpec) -> usize {
    usize::try_from(spec.share.millicores.div_ceil(1_000)).unwrap_or(usize::MAX).max(1)
}

impl WorkerHost for EmbeddedWorkers {
    /// Starts a worker, which is ready immediately.
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
            tracing::warn!(reason, cluster = %worker.cluster, slot = worker.slot, "could not start a worker");
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
                    // It keeps its old spec, so that reconciliation repeats the action.
                    tracing::warn!(%error, %worker, "could not start threads for a worker; it keeps the old ones");
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
        // Outside the lock, because a cancelled statement may request another lease immediately.
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
                // It runs in this process, so it always answers.
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
