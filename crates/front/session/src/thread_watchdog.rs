//! Watchdog of query threads: reports threads that do not return from a task, in the log, in a metric and to probes.

use std::collections::HashSet;
use std::time::Duration;

use scheduler::{StuckThread, stuck_threads};

use crate::instance::Instance;

/// Time in one task after which a thread is reported. Tasks pause about every millisecond; the slowest step that cannot
/// pause, a sort or a regular expression over one batch, is done within it.
pub const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Time in one task after which a thread is considered stuck for good: no step over one batch takes minutes even on a
/// machine that swaps. A restart is then the cure, so `/healthz` fails. Kubernetes asks for another minute before it
/// believes that.
pub const STUCK_AFTER: Duration = Duration::from_secs(300);

/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Instance {
    /// Logs each thread once when it is first reported and once when it is stuck, for as long as the server runs.
    pub async fn watch_threads(&self) {
        let (mut reported, mut stuck) = (HashSet::new(), HashSet::new());
        loop {
            self.clock.sleep(CHECK_INTERVAL).await;
            let threads = stuck_threads(STALLED_AFTER);
            for thread in threads.iter().filter(|thread| !reported.contains(&thread.thread)) {
                tracing::warn!("{}", self.describe_thread(thread));
            }
            for thread in
                threads.iter().filter(|thread| STUCK_AFTER <= thread.lasted && !stuck.contains(&thread.thread))
            {
                tracing::error!("{}; /healthz reports the process as unhealthy", self.describe_thread(thread));
            }
            stuck = threads.iter().filter(|it| STUCK_AFTER <= it.lasted).map(|it| it.thread.clone()).collect();
            reported = threads.into_iter().map(|it| it.thread).collect();
        }
    }

    /// Describes the threads that have been in one task for longer than `limit`; empty if there is none.
    pub fn stalled_threads(&self, limit: Duration) -> Vec<String> {
        stuck_threads(limit).iter().map(|thread| self.describe_thread(thread)).collect()
    }

    /// Describes a thread by its name, time, query and session: never by the query's text, which may hold secrets.
    fn describe_thread(&self, standing: &StuckThread) -> String {
        let StuckThread { thread, query, lasted } = standing;
        let seconds = lasted.as_secs();
        let Some(query) = query else {
            return format!("query thread {thread} has been in one step of background work for {seconds} s");
        };
        let session = self.backends.pid_of(*query).map(|pid| format!(" of session {pid}")).unwrap_or_default();
        format!("query thread {thread} has been in one step of query {query}{session} for {seconds} s")
    }
}
