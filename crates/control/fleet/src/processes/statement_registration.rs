//! Registration of running statements on worker processes.

use std::sync::Arc;

use cluster_model::{Worker, WorkerId, WorkerState};
use scheduler::WorkerRegistration;
use tokio_util::sync::CancellationToken;

use super::WorkerProcesses;

/// One statement's registration on all ready workers of its cluster, which counts as running there until it is dropped.
#[derive(Debug)]
pub(super) struct StatementRegistration {
    host: Arc<WorkerProcesses>,
    number: u64,
    workers: Vec<Worker>,
    shutdown_token: CancellationToken,
}

impl StatementRegistration {
    /// Registers a statement on those of `workers` that are ready; `None` if none is.
    pub(super) fn try_new(host: &Arc<WorkerProcesses>, workers: &[Worker]) -> Option<Self> {
        let mut hosted = host.state.lock();
        let is_ready = |worker: &&Worker| {
            hosted.workers.get(&worker.id).is_some_and(|one| one.worker().state == WorkerState::Ready)
        };
        let workers: Vec<Worker> = workers.iter().filter(is_ready).cloned().collect();
        if workers.is_empty() {
            return None;
        }
        hosted.next_statement += 1;
        let (number, shutdown_token) = (hosted.next_statement, CancellationToken::new());
        for worker in &workers {
            if let Some(one) = hosted.workers.get_mut(&worker.id) {
                one.statements.insert(number, shutdown_token.clone());
            }
        }
        drop(hosted);
        Some(Self { host: Arc::clone(host), number, workers, shutdown_token })
    }
}

impl WorkerRegistration for StatementRegistration {
    fn worker(&self) -> WorkerId {
        self.workers.first().expect("a registration has at least one worker").id
    }

    fn worker_processes(&self) -> &[Worker] {
        &self.workers
    }

    fn shutdown_token(&self) -> &CancellationToken {
        &self.shutdown_token
    }
}

impl Drop for StatementRegistration {
    fn drop(&mut self) {
        let mut hosted = self.host.state.lock();
        let mut is_last_of_draining = false;
        for worker in &self.workers {
            if let Some(one) = hosted.workers.get_mut(&worker.id) {
                one.statements.remove(&self.number);
                is_last_of_draining |= one.worker().state == WorkerState::Draining && one.statements.is_empty();
            }
        }
        drop(hosted);
        if is_last_of_draining {
            // Reconciliation may stop it now.
            self.host.changes.advance();
        }
    }
}
