//! Events of workers between two observations.

use std::collections::HashMap;

use cluster_model::cluster_events::{ClusterEvent, EventKind};
use cluster_model::desired_state::DesiredState;
use cluster_model::worker::{Worker, WorkerId, WorkerState};

/// Returns the events between two observations, in the order of the workers in `after`. `at` is in microseconds since
/// 1970 UTC.
pub(super) fn events(before: &[Worker], after: &[Worker], desired: &DesiredState, at: i64) -> Vec<ClusterEvent> {
    let known: HashMap<WorkerId, &Worker> = before.iter().map(|worker| (worker.id, worker)).collect();
    let mut events = Vec::new();
    for worker in after {
        let before = known.get(&worker.id);
        let mut kinds = Vec::new();
        if before.is_none_or(|before| before.state != worker.state) {
            kinds.push(match worker.state {
                WorkerState::Starting => EventKind::WorkerStarting,
                WorkerState::Ready => EventKind::WorkerReady,
                WorkerState::Draining => EventKind::WorkerDraining,
                WorkerState::Gone if worker.failed => EventKind::WorkerFailed,
                WorkerState::Gone => EventKind::WorkerStopped,
            });
        }
        if worker.hung && worker.state != WorkerState::Gone && before.is_none_or(|before| !before.hung) {
            kinds.push(EventKind::WorkerHung);
        }
        if !worker.hung && worker.state != WorkerState::Gone && before.is_some_and(|before| before.hung) {
            kinds.push(EventKind::WorkerRecovered);
        }
        for kind in kinds {
            let cluster = desired.cluster(worker.cluster).map(|cluster| cluster.spec.name.clone());
            let why = worker.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
            let detail = format!("worker {} in slot {}{why}", worker.id, worker.slot);
            events.push(ClusterEvent { at, cluster, author: None, kind, detail });
        }
    }
    events
}

/// Whether two observations have the same workers in the same states, ignoring heartbeats and statistics.
pub(super) fn is_same_state(before: &[Worker], after: &[Worker]) -> bool {
    fn seen(worker: &Worker) -> impl PartialEq + '_ {
        let Worker {
            id,
            state,
            state_since: since,
            hung,
            failed,
            is_handing_over: hands_over,
            spec,
            version,
            address,
            ..
        } = worker;
        (id, state, since, hung, failed, hands_over, spec, version, address)
    }
    before.len() == after.len() && before.iter().zip(after).all(|(before, after)| seen(before) == seen(after))
}
