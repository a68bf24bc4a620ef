//! Sessions, statements, clusters and caches, as the system tables show them.

use cluster_model::ClusterEvent;
use session_context::{Activity, ClusterRow, CopyProgressRow, LogRow, ServiceRow, SessionRow, WorkerRow};
use shards::TierStats;
use supervisor::ServiceStatus;

use crate::instance::Instance;
use crate::interrupt::InterruptReason;

/// Source of the rows of `pg_stat_activity` and of tables in `sys`.
impl Activity for Instance {
    fn sessions(&self) -> Vec<SessionRow> {
        self.backends.all().iter().map(|backend| backend.activity_row()).collect()
    }

    fn copies(&self) -> Vec<CopyProgressRow> {
        self.backends.all().iter().filter_map(|backend| backend.copy_row()).collect()
    }

    fn cancel(&self, pid: i32) -> bool {
        self.backends.find(pid).is_some_and(|backend| {
            backend.interrupt.stop_statement(InterruptReason::CancelRequest);
            true
        })
    }

    fn terminate(&self, pid: i32) -> bool {
        self.backends.find(pid).is_some_and(|backend| {
            backend.interrupt.terminate();
            true
        })
    }

    fn started_us(&self) -> i64 {
        self.backends.started_us
    }

    fn cache_tiers(&self) -> Vec<TierStats> {
        self.execution.cache_tiers()
    }

    fn clusters(&self) -> Vec<ClusterRow> {
        self.clusters.cluster_rows()
    }

    fn workers(&self) -> Vec<WorkerRow> {
        self.clusters.worker_rows()
    }

    fn cluster_events(&self) -> Vec<ClusterEvent> {
        self.clusters.events()
    }

    fn services(&self) -> Vec<ServiceRow> {
        let row = |status: ServiceStatus| ServiceRow {
            name: status.name,
            state: status.state.to_string(),
            started_us: status.started_us,
            restarts: status.restarts,
            last_error: status.last_error,
        };
        self.services.statuses().into_iter().map(row).collect()
    }

    fn log(&self) -> Vec<LogRow> {
        self.query_log.rows()
    }
}
