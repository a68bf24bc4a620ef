//! Workers that answer here and could not be reached where they were needed: only queries find that out.

use std::time::Duration;

use cluster_model::{WorkerId, WorkerState};

use super::Processes;
use super::one::One;

/// Such a worker gets no statements for so long. The next one that does finds out whether it can be reached again, and waits for that as long as a
/// connection may take.
const UNREACHED_FOR: Duration = Duration::from_secs(15);

impl Processes {
    /// Takes notice that a query could not reach a worker, from here or from another worker: for a while it is as if it hung. Not where no other
    /// worker of its cluster would be left.
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
            tracing::warn!(%worker, "a query could not reach a worker: others do without it for a while");
            self.changes.advance();
        }
    }
}
