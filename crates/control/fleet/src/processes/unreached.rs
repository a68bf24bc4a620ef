//! Workers that send heartbeats but that a query could not reach, which only queries find out.

use std::time::Duration;

use cluster_model::{WorkerId, WorkerState};

use super::Processes;
use super::one::One;

/// Time for which an unreachable worker gets no statements. The first statement after it tries again, and waits for the
/// connect timeout if the worker is still unreachable.
const UNREACHED_FOR: Duration = Duration::from_secs(15);

impl Processes {
    /// Reports that a query could not reach a worker, from here or from another worker. The worker counts as hung for a
    /// while, unless no other worker of its cluster would be left.
    pub fn unreached(&self, worker: WorkerId) {
        let now = self.clock.monotonic();
        let mut hosted = self.hosted.lock();
        let Some(cluster) = hosted.workers.get(&worker).map(|one| one.seen().cluster) else { return };
        let serves = |one: &One| one.seen().state == WorkerState::Ready && !one.observed(now).hung;
        let is_other = |one: &&One| one.seen().id != worker && one.seen().cluster == cluster;
        if !hosted.workers.values().filter(is_other).any(serves) {
            return;
        }
        if let Some(one) = hosted.workers.get_mut(&worker).filter(|one| serves(one)) {
            one.unreached(now + UNREACHED_FOR);
            drop(hosted);
            tracing::warn!(%worker, "a query could not reach the worker; it gets no statements for {UNREACHED_FOR:?}");
            self.changes.advance();
        }
    }
}
