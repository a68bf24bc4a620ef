//! Simulated worker hosts, for pods and for the instance's process, in tests without nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::{StopReason, Worker, WorkerId, WorkerSpec, WorkerState};
use control_plane::{Guests, StartWorker, Vouched, WorkerHost};
use parking_lot::Mutex;
use types::Clock;

/// Simulated workers that carry out every order at once.
#[derive(Debug)]
pub(crate) struct Room {
    clock: Arc<dyn Clock>,
    workers: Mutex<BTreeMap<WorkerId, (Worker, Option<String>)>>,
    next: Mutex<u64>,
}

impl Room {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Room> {
        Arc::new(Room { clock, workers: Mutex::default(), next: Mutex::new(1) })
    }

    /// Adds a worker that has joined with a valid token.
    pub(crate) fn come(&self, vouched: Vouched) {
        let Vouched { cluster, slot, spec, life } = vouched;
        self.put(&StartWorker { cluster, slot, spec }, Some(life));
    }

    /// Returns whether a worker runs in the pod with this uid.
    pub(crate) fn has(&self, life: &str) -> bool {
        let workers = self.workers.lock();
        workers.values().any(|(worker, of)| of.as_deref() == Some(life) && worker.state != WorkerState::Gone)
    }

    fn put(&self, start: &StartWorker, life: Option<String>) {
        let mut next = self.next.lock();
        *next += 1;
        let (id, now) = (WorkerId(*next), self.clock.monotonic());
        let worker = Worker {
            id,
            cluster: start.cluster,
            slot: start.slot,
            spec: start.spec.clone(),
            state: WorkerState::Ready,
            since: now,
            heard: now,
            hung: false,
            failed: false,
            hands_over: false,
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
                (worker.state, worker.since, worker.failed) = (WorkerState::Gone, now, failed);
                worker.detail = Some(how.to_owned());
            }
        });
    }
}

impl WorkerHost for Room {
    fn start(&self, worker: &StartWorker) {
        self.put(worker, None);
    }

    fn configure(&self, worker: WorkerId, spec: &WorkerSpec) {
        self.change(worker, |worker, _| worker.spec = spec.clone());
    }

    fn drain(&self, worker: WorkerId) {
        self.change(worker, |worker, now| {
            if worker.state == WorkerState::Ready {
                (worker.state, worker.since) = (WorkerState::Draining, now);
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
        workers.values().map(|(worker, _)| Worker { heard: now, ..worker.clone() }).collect()
    }
}

impl Guests for Room {
    fn life(&self, worker: WorkerId) -> Option<String> {
        self.workers.lock().get(&worker)?.1.clone()
    }

    fn lost(&self, worker: WorkerId, how: &str) {
        let is_draining = self.workers.lock().get(&worker).is_some_and(|(one, _)| one.state == WorkerState::Draining);
        self.end(worker, !is_draining, how);
    }
}
