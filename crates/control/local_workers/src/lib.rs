//! Workers in the server's own process: each has query threads and a share of the memory, and all use the same caches.
//!
//! Statements get a [`scheduler::Lease`] on a worker, which they drop when they end; this crate does not know what they
//! do.
//!
//! [`EmbeddedWorkers`] is the worker host. `embedded_worker.rs` has the resources of one worker,
//! `desired_state_file.rs` the file with the desired state of the clusters.

mod desired_state_file;
mod embedded_worker;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use cluster_model::{StopReason, Worker, WorkerId, WorkerSpec, WorkerState};
use control_plane::{StartRequest, WorkerHost};
use datafusion::execution::memory_pool::MemoryPool;
pub use desired_state_file::DesiredStateFile;
use embedded_worker::EmbeddedWorker;
use parking_lot::Mutex;
use scheduler::{Lease, QueryThreads, WorkerMemory, WorkerRegistration};
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
    threads: Arc<QueryThreads>,
    /// Number of query threads of the process.
    cores: usize,
    /// Query memory of the process.
    memory: Arc<dyn MemoryPool>,
    memory_bytes: u64,
    state: Mutex<HostState>,
}

#[derive(Default)]
struct HostState {
    workers: BTreeMap<WorkerId, WorkerEntry>,
    /// Worker that uses the process's own threads.
    process_threads_owner: Option<WorkerId>,
}

/// Worker with its observed state and its resources.
struct WorkerEntry {
    worker: Worker,
    /// Resources; `None` once the worker has ended.
    resources: Option<Arc<EmbeddedWorker>>,
}

impl EmbeddedWorkers {
    /// Creates a host without workers, for a process with these threads and this memory.
    #[must_use]
    pub fn new(
        threads: Arc<QueryThreads>,
        cores: usize,
        memory: Arc<dyn MemoryPool>,
        memory_bytes: u64,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        let version = std::env::var(TEST_VERSION).unwrap_or_else(|_| env!("CARGO_PKG_VERSION").to_owned());
        Arc::new(Self { clock, random, version, threads, cores, memory, memory_bytes, state: Mutex::default() })
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
        let hosted = self.state.lock();
        let able = workers.iter().filter_map(|worker| {
            let one = hosted.workers.get(&worker.id).filter(|one| one.worker.state == WorkerState::Ready)?;
            one.resources.as_ref()
        });
        let least = able.min_by_key(|room| room.running())?;
        Some(least.lease())
    }

    /// Returns a lease for a statement on worker processes: threads and memory of this process for the part that runs
    /// here.
    #[must_use]
    pub fn lease_for_processes(&self, hold: Box<dyn WorkerRegistration>) -> Arc<Lease> {
        Lease::new(Arc::clone(&self.threads), Arc::clone(&self.memory), hold)
    }

    /// Returns the bytes of memory used by a worker's statements.
    #[must_use]
    pub fn memory_used(&self, worker: WorkerId) -> u64 {
        let hosted = self.state.lock();
        let room = hosted.workers.get(&worker).and_then(|one| one.resources.as_ref());
        room.map_or(0, |room| room.memory_used())
    }

    /// Returns threads for a worker: those of the process if it has all cores and no other worker uses them, otherwise
    /// new ones.
    fn threads_for(&self, id: WorkerId, cores: usize, hosted: &mut HostState) -> io::Result<Arc<QueryThreads>> {
        let may_have_own = hosted.process_threads_owner.is_none_or(|other| other == id);
        if self.cores <= cores && may_have_own {
            hosted.process_threads_owner = Some(id);
            return Ok(Arc::clone(&self.threads));
        }
        let started = QueryThreads::start(cores, &self.clock)?;
        if hosted.process_threads_owner == Some(id) {
            hosted.process_threads_owner = None;
        }
        Ok(Arc::new(started))
    }

    /// Creates the resources of a worker.
    fn create_worker(
        &self,
        id: WorkerId,
        spec: &WorkerSpec,
        hosted: &mut HostState,
    ) -> Result<Arc<EmbeddedWorker>, String> {
        let living = hosted.workers.values().filter(|one| one.resources.is_some()).count();
        if WORKERS_MAX <= living {
            return Err(format!("the process has {WORKERS_MAX} workers already"));
        }
        let cores = core_count(spec);
        let threads =
            self.threads_for(id, cores, hosted).map_err(|error| format!("could not start threads: {error}"))?;
        let memory = WorkerMemory::new(Arc::clone(&self.memory), self.memory_limit(spec));
        Ok(EmbeddedWorker::new(id, threads, cores, memory))
    }

    /// Returns a worker's memory limit; `None` if it may use all memory of the process.
    fn memory_limit(&self, spec: &WorkerSpec) -> Option<usize> {
        let bytes = spec.share.memory_bytes;
        (bytes < self.memory_bytes).then(|| usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

/// Returns the number of threads for a worker's share of the cores.
fn core_count(spec: &WorkerSpec) -> usize {
    usize::try_from(spec.share.millicores.div_ceil(1_000)).unwrap_or(usize::MAX).max(1)
}

impl WorkerHost for EmbeddedWorkers {
    /// Starts a worker, which is ready immediately.
    fn start(&self, worker: &StartRequest) {
        let now = self.clock.monotonic();
        let mut hosted = self.state.lock();
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
            state_since: now,
            last_heartbeat: now,
            hung: false,
            failed: false,
            is_handing_over: false,
            version: Some(self.version.clone()),
            address: None,
            running: 0,
            cache_bytes: 0,
            detail: None,
        };
        let room = self.create_worker(id, &worker.spec, &mut hosted);
        if let Err(reason) = &room {
            tracing::warn!(reason, cluster = %worker.cluster, slot = worker.slot, "could not start a worker");
            (seen.state, seen.failed, seen.detail) = (WorkerState::Gone, true, Some(reason.clone()));
        }
        hosted.workers.insert(id, WorkerEntry { worker: seen, resources: room.ok() });
    }

    fn configure(&self, worker: WorkerId, spec: &WorkerSpec) {
        let mut hosted = self.state.lock();
        let Some(room) = hosted.workers.get(&worker).and_then(|one| one.resources.clone()) else { return };
        let cores = core_count(spec);
        if cores != room.cores() {
            match self.threads_for(worker, cores, &mut hosted) {
                Ok(threads) => room.set_threads(threads, cores),
                Err(error) => {
                    // It keeps its old spec, so that reconciliation repeats the action.
                    tracing::warn!(%error, %worker, "could not start threads for a worker; it keeps its old threads");
                    return;
                }
            }
        }
        room.set_memory(self.memory_limit(spec));
        if let Some(one) = hosted.workers.get_mut(&worker) {
            one.worker.spec = spec.clone();
        }
    }

    fn drain(&self, worker: WorkerId) {
        let now = self.clock.monotonic();
        if let Some(one) = self.state.lock().workers.get_mut(&worker)
            && matches!(one.worker.state, WorkerState::Starting | WorkerState::Ready)
        {
            (one.worker.state, one.worker.state_since) = (WorkerState::Draining, now);
        }
    }

    fn mark_hung(&self, worker: WorkerId) {
        if let Some(one) = self.state.lock().workers.get_mut(&worker) {
            one.worker.hung = true;
        }
    }

    fn stop(&self, worker: WorkerId, reason: StopReason) {
        let now = self.clock.monotonic();
        let mut hosted = self.state.lock();
        let Some(room) = hosted.workers.get_mut(&worker).and_then(|one| one.resources.take()) else { return };
        if hosted.process_threads_owner == Some(worker) {
            hosted.process_threads_owner = None;
        }
        if let Some(WorkerEntry { worker: seen, .. }) = hosted.workers.get_mut(&worker) {
            (seen.state, seen.state_since, seen.running) = (WorkerState::Gone, now, 0);
            (seen.failed, seen.detail) = (reason.is_failure(), Some(reason.to_string()));
        }
        drop(hosted);
        // Outside the lock, because a cancelled statement may request another lease immediately.
        room.cancel_statements();
    }

    fn forget(&self, worker: WorkerId) {
        self.state.lock().workers.retain(|id, one| *id != worker || one.resources.is_some());
    }

    fn observe(&self) -> Vec<Worker> {
        let now = self.clock.monotonic();
        let mut hosted = self.state.lock();
        let observed = hosted.workers.values_mut().map(|one| {
            if let Some(room) = &one.resources {
                // It runs in this process, so it always answers.
                (one.worker.last_heartbeat, one.worker.hung, one.worker.running) = (now, false, room.running());
            }
            one.worker.clone()
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
