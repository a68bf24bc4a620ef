//! The watchdog of query threads: names those that do not come back from a task, in the log, in a metric and to probes.

use std::collections::HashSet;
use std::time::Duration;

use scheduler::{StandingThread, standing_threads};

use crate::instance::Instance;

/// A thread that has been in one task for so long is named. Tasks pause about every millisecond; the slowest step that cannot pause, a sort or a
/// regular expression over one batch, is done within it.
pub const STANDING: Duration = Duration::from_secs(5);

/// A thread that has been in one task for so long never comes back: no step over one batch takes minutes even on a machine that swaps. A restart is
/// then the cure, so `/healthz` says no. Kubernetes asks for another minute before it believes that.
pub const STUCK: Duration = Duration::from_secs(300);

const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Instance {
    /// Logs each thread once that begins to stand, and again when it is stuck, for as long as the server runs.
    pub async fn watch_threads(&self) {
        let (mut standing, mut stuck) = (HashSet::new(), HashSet::new());
        loop {
            self.clock.sleep(LOOK_EVERY).await;
            let threads = standing_threads(STANDING);
            for thread in threads.iter().filter(|thread| !standing.contains(&thread.thread)) {
                tracing::warn!("{}", self.named(thread));
            }
            for thread in threads.iter().filter(|thread| STUCK <= thread.lasted && !stuck.contains(&thread.thread)) {
                tracing::error!("{}; /healthz reports the process as unhealthy", self.named(thread));
            }
            stuck = threads.iter().filter(|it| STUCK <= it.lasted).map(|it| it.thread.clone()).collect();
            standing = threads.into_iter().map(|it| it.thread).collect();
        }
    }

    /// The threads that stand, in words; empty where none does.
    pub fn standing(&self, limit: Duration) -> Vec<String> {
        standing_threads(limit).iter().map(|thread| self.named(thread)).collect()
    }

    /// Thread, time, query and session: never the query's text, which may hold secrets.
    fn named(&self, standing: &StandingThread) -> String {
        let StandingThread { thread, query, lasted } = standing;
        let seconds = lasted.as_secs();
        let Some(query) = query else {
            return format!("query thread {thread} has been in one step of background work for {seconds} s");
        };
        let session = self.backends.pid_of(*query).map(|pid| format!(" of session {pid}")).unwrap_or_default();
        format!("query thread {thread} has been in one step of query {query}{session} for {seconds} s")
    }
}
