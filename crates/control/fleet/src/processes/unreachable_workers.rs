//! Workers that send heartbeats but that a query could not reach, which only queries find out.

use std::time::Duration;

use cluster_model::{WorkerId, WorkerState};

use super::WorkerProcesses;
use super::worker_entry::WorkerEntry;

/// Time for which an unreachable worker gets no statements. The first statement after it tries again, and waits for the
/// connect timeout if the worker is still unreachable.
const UNREACHABLE_TIME: Duration = Duration::from_secs(15);

impl WorkerProcesses {
    /// Reports that a query could not reach a worker, from here or from another worker. The worker counts as hung for a
    /// while, unless no other worker of its cluster would be left.
    pub fn report_unreachable(&self, worker: WorkerId) {
        let now = self.clock.monotonic();
        let mut hosted = self.state.lock();
        let Some(cluster) = hosted.workers.get(&worker).map(|one| one.worker().cluster) else { return };
        let serves = |one: &WorkerEntry| one.worker().state == WorkerState::Ready && !one.observed(now).hung;
        let is_other = |one: &&WorkerEntry| one.worker().id != worker && one.worker().cluster == cluster;
        if !hosted.workers.values().filter(is_other).any(serves) {
            return;
        }
        if let Some(one) = hosted.workers.get_mut(&worker).filter(|one| serves(one)) {
            one.mark_unreachable(now + UNREACHABLE_TIME);
            drop(hosted);
            tracing::warn!(%worker, "a query could not reach the worker; it gets no statements for {UNREACHABLE_TIME:?}");
            self.changes.advance();
        }
    }
}
