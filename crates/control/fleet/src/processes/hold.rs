//! Registration of running statements on worker processes.

use std::sync::Arc;

use cluster_model::{Worker, WorkerId, WorkerState};
use scheduler::Hold;
use tokio_util::sync::CancellationToken;

use super::Processes;

/// One statement's registration on all ready workers of its cluster, which counts as running there until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    host: Arc<Processes>,
    number: u64,
    workers: Vec<Worker>,
    ended: CancellationToken,
}

impl Held {
    /// Registers a statement on those of `workers` that are ready; `None` if none is.
    pub(super) fn on(host: &Arc<Processes>, workers: &[Worker]) -> Option<Self> {
        let mut hosted = host.hosted.lock();
        let is_ready =
            |worker: &&Worker| hosted.workers.get(&worker.id).is_some_and(|one| one.seen().state == WorkerState::Ready);
        let workers: Vec<Worker> = workers.iter().filter(is_ready).cloned().collect();
        if workers.is_empty() {
            return None;
        }
        hosted.next_hold += 1;
        let (number, ended) = (hosted.next_hold, CancellationToken::new());
        for worker in &workers {
            if let Some(one) = hosted.workers.get_mut(&worker.id) {
                one.holds.insert(number, ended.clone());
            }
        }
        drop(hosted);
        Some(Self { host: Arc::clone(host), number, workers, ended })
    }
}

impl Hold for Held {
    fn worker(&self) -> WorkerId {
        self.workers.first().expect("a hold has at least one worker").id
    }

    fn processes(&self) -> &[Worker] {
        &self.workers
    }

    fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut hosted = self.host.hosted.lock();
        let mut is_last_of_draining = false;
        for worker in &self.workers {
            if let Some(one) = hosted.workers.get_mut(&worker.id) {
                one.holds.remove(&self.number);
                is_last_of_draining |= one.seen().state == WorkerState::Draining && one.holds.is_empty();
            }
        }
        drop(hosted);
        if is_last_of_draining {
            // Reconciliation may stop it now.
            self.host.changes.advance();
        }
    }
}
