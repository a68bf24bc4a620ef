//! Simulated worker hosts, for pods and for the instance's process, in tests without nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::{StopReason, Worker, WorkerId, WorkerSpec, WorkerState};
use control_plane::{StartRequest, TokenWorkerHost, VerifiedWorker, WorkerHost};
use parking_lot::Mutex;
use types::Clock;

/// Simulated workers that carry out every order at once.
#[derive(Debug)]
pub(crate) struct FakeWorkers {
    clock: Arc<dyn Clock>,
    workers: Mutex<BTreeMap<WorkerId, (Worker, Option<String>)>>,
    next: Mutex<u64>,
}

impl FakeWorkers {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<FakeWorkers> {
        Arc::new(FakeWorkers { clock, workers: Mutex::default(), next: Mutex::new(1) })
    }

    /// Adds a worker that has joined with a valid token.
    pub(crate) fn come(&self, vouched: VerifiedWorker) {
        let VerifiedWorker { cluster, slot, spec, host_uid: life } = vouched;
        self.put(&StartRequest { cluster, slot, spec }, Some(life));
    }

    /// Returns whether a worker runs in the pod with this uid.
    pub(crate) fn has(&self, life: &str) -> bool {
        let workers = self.workers.lock();
        workers.values().any(|(worker, of)| of.as_deref() == Some(life) && worker.state != WorkerState::Gone)
    }

    fn put(&self, start: &StartRequest, life: Option<String>) {
        let mut next = self.next.lock();
        *next += 1;
        let (id, now) = (WorkerId(*next), self.clock.monotonic());
        let worker = Worker {
            id,
            cluster: start.cluster,
            slot: start.slot,
            spec: start.spec.clone(),
            state: WorkerState::Ready,
            state_since: now,
            last_heartbeat: now,
            hung: false,
            failed: false,
            is_handing_over: false,
            version: Some("1".to_owned()),
            address: Some("10.0.0.1:1".to_owned()),
            running: 0,
            cache_bytes: 0,
            detail: None,
        };
        self.workers.lock().insert(id, (worker, life));
    }

    fn change(&self, worker: WorkerId, change: impl FnOnce(&mut Worker, Duration)) {
        if let Some((worker, _)) = self.workers.lock().get_mut(&worker) {
            change(worker, self.clock.monotonic());
        }
    }

    fn end(&self, worker: WorkerId, failed: bool, how: &str) {
        self.change(worker, |worker, now| {
            if worker.state != WorkerState::Gone {
                (worker.state, worker.state_since, worker.failed) = (WorkerState::Gone, now, failed);
                worker.detail = Some(how.to_owned());
            }
        });
    }
}

impl WorkerHost for FakeWorkers {
    fn start(&self, worker: &StartRequest) {
        self.put(worker, None);
    }

    fn configure(&self, worker: WorkerId, spec: &WorkerSpec) {
        self.change(worker, |worker, _| worker.spec = spec.clone());
    }

    fn drain(&self, worker: WorkerId) {
        self.change(worker, |worker, now| {
            if worker.state == WorkerState::Ready {
                (worker.state, worker.state_since) = (WorkerState::Draining, now);
            }
        });
    }

    fn mark_hung(&self, worker: WorkerId) {
        self.change(worker, |worker, _| worker.hung = true);
    }

    fn stop(&self, worker: WorkerId, reason: StopReason) {
        self.end(worker, reason.is_failure(), &reason.to_string());
    }

    fn forget(&self, worker: WorkerId) {
        self.workers.lock().remove(&worker);
    }

    fn observe(&self) -> Vec<Worker> {
        let now = self.clock.monotonic();
        let workers = self.workers.lock();
        workers.values().map(|(worker, _)| Worker { last_heartbeat: now, ..worker.clone() }).collect()
    }
}

impl TokenWorkerHost for FakeWorkers {
    fn host_uid(&self, worker: WorkerId) -> Option<String> {
        self.workers.lock().get(&worker)?.1.clone()
    }

    fn mark_lost(&self, worker: WorkerId, how: &str) {
        let is_draining = self.workers.lock().get(&worker).is_some_and(|(one, _)| one.state == WorkerState::Draining);
        self.end(worker, !is_draining, how);
    }
}
