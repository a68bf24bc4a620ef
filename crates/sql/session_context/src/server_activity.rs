//! The activity of a server, as the system tables show it.

use std::time::Duration;

use cluster_model::{ClusterEvent, ClusterPhase, ClusterSpec, Worker};
use shards::TierStats;
use types::Oid;

/// Source of a server's sessions, statements, clusters, workers and services, and the way to cancel statements.
pub trait Activity: Send + Sync + std::fmt::Debug {
    /// Returns all sessions, ordered by process id.
    fn sessions(&self) -> Vec<SessionRow>;
    /// Returns all running COPY statements.
    fn copies(&self) -> Vec<CopyProgressRow>;
    /// Cancels the statement of a session; returns whether the session exists.
    fn cancel(&self, pid: i32) -> bool;
    /// Ends a session; returns whether it existed.
    fn terminate(&self, pid: i32) -> bool;
    /// Returns the start of the server, in microseconds since 1970 UTC.
    fn started_us(&self) -> i64;
    /// Returns the usage of each tier of the block cache.
    fn cache_tiers(&self) -> Vec<TierStats>;
    /// Returns all clusters, oldest first.
    fn clusters(&self) -> Vec<ClusterRow>;
    /// Returns all workers, including those that have left recently.
    fn workers(&self) -> Vec<WorkerRow>;
    /// Returns the events of clusters and workers, oldest first.
    fn cluster_events(&self) -> Vec<ClusterEvent>;
    /// Returns all background services of the server.
    fn services(&self) -> Vec<ServiceRow>;
    /// Returns the logged statements that have ended, oldest first.
    fn log(&self) -> Vec<LogRow>;
}

/// Row of `pg_stat_activity`: a session. Times are microseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub pid: i32,
    pub role: String,
    pub role_oid: Oid,
    pub database: String,
    pub application_name: String,
    pub client_addr: Option<String>,
    pub client_port: Option<i32>,
    pub backend_start_us: i64,
    pub transaction_start_us: Option<i64>,
    pub query_start_us: Option<i64>,
    pub state_change_us: i64,
    /// State: `active`, `idle`, `idle in transaction` or `idle in transaction (aborted)`.
    pub state: &'static str,
    pub query_id: Option<i64>,
    pub query: String,
    /// Event within the server that the statement waits for, if any.
    pub wait_event: Option<&'static str>,
    /// Present memory of the statement, in bytes.
    pub memory_bytes: i64,
    /// Peak memory of the statement, in bytes.
    pub memory_bytes_peak: i64,
    /// Memory limit of the statement, in bytes; `None` without a limit of its own.
    pub memory_bytes_max: Option<i64>,
    /// Running statement, or the last one; `None` before the first.
    pub statement: Option<StatementRow>,
}

/// Execution state of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementRow {
    /// Cluster that runs the statement; `None` if it needs none.
    pub cluster: Option<String>,
    /// Worker that runs the statement; `None` before one is assigned.
    pub worker: Option<String>,
    /// State: `queued` while the statement waits for a cluster, `running` otherwise.
    pub state: &'static str,
    /// Time waited so far, for a cluster and for the client.
    pub waiting_time: Duration,
    /// Time not spent waiting.
    pub working_time: Duration,
}

/// Row of `sys.cluster`. Times are microseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterRow {
    pub spec: ClusterSpec,
    /// Number of workers that accept statements.
    pub ready_workers: u32,
    pub state: Option<ClusterPhase>,
    pub max_running: u32,
    pub running_statements: u32,
    pub queued_statements: u32,
    /// Statements admitted since the server started.
    pub admitted_statements: u64,
    /// Admitted statements that had to wait.
    pub waited_statements: u64,
    pub longest_wait: Duration,
    pub created_us: i64,
    pub created_by: Option<String>,
    pub changed_us: i64,
    pub changed_by: Option<String>,
}

/// Row of `sys.worker`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRow {
    /// Name of the worker's cluster; `None` if the cluster was dropped.
    pub cluster: Option<String>,
    pub worker: Worker,
    /// Memory of the worker's statements, in bytes.
    pub memory_used: u64,
    /// Usage of the worker's cache; `None` if it has no cache of its own.
    pub cache_uses: Option<WorkerCacheStatistics>,
    /// True if the worker runs in this process and shares its cache.
    pub shares_cache: bool,
}

/// Usage of a worker's cache since the worker started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerCacheStatistics {
    /// Block reads that were served from memory.
    pub hits: u64,
    /// Block reads that were not in memory.
    pub misses: u64,
    /// Shards opened by pre-warming, before any query read them.
    pub prewarmed_shards: u64,
    /// Blocks read by pre-warming.
    pub prewarmed_blocks: u64,
    /// Shards that pre-warming skipped in part or in full, because the worker was busy or unreachable.
    pub prewarming_skipped: u64,
}

/// Row of `sys.service`: a background service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRow {
    pub name: &'static str,
    /// State: `running`, `failing`, `restarting` or `done`.
    pub state: String,
    /// Last start, in microseconds since 1970 UTC.
    pub started_us: i64,
    /// Number of starts after the first.
    pub restarts: u64,
    /// Present failure of the service's work; if it succeeds, the cause of the last restart.
    pub last_error: Option<String>,
}

/// Row of `sys.log_query`: a statement that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Start of the statement, in microseconds since 1970 UTC.
    pub started_us: i64,
    pub query_id: i64,
    pub pid: i32,
    pub role: String,
    pub database: String,
    pub application_name: String,
    pub cluster: Option<String>,
    pub worker: Option<String>,
    /// Statement text, truncated as in `pg_stat_activity` and without passwords.
    pub query: String,
    /// Time spent in each phase, in the order of [`STATEMENT_PHASES`].
    pub phases: [Duration; STATEMENT_PHASES.len()],
    /// Time used on query threads, summed over all threads.
    pub thread_time: Duration,
    /// Peak memory, in bytes.
    pub memory_bytes_peak: i64,
    /// Outcome: `DONE`, `CANCEL` or `ERROR`.
    pub outcome: &'static str,
    /// SQLSTATE of the error, if it failed.
    pub sqlstate: Option<&'static str>,
}

/// Phases of a statement, in order. In `acquire_resources` it waits for a cluster, in `client` for its client to read
/// rows; in the others it works.
pub const STATEMENT_PHASES: [&str; 7] = ["parse", "plan", "assemble", "compile", "acquire_resources", "run", "client"];

/// Row of `pg_stat_progress_copy`: a running COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyProgressRow {
    pub pid: i32,
    pub table: Oid,
    /// Command: `COPY FROM` or `COPY TO`.
    pub command: &'static str,
    /// Kind of source or target: `PIPE` or `FILE`.
    pub source: &'static str,
    pub bytes_processed: i64,
    /// Total bytes of the input; 0 if unknown.
    pub bytes_total: i64,
    pub rows_processed: i64,
    pub rows_excluded: i64,
}

/// Activity of a server without sessions, for tests and tools.
#[derive(Debug, Default)]
pub struct NoActivity;

impl Activity for NoActivity {
    fn sessions(&self) -> Vec<SessionRow> {
        Vec::new()
    }

    fn copies(&self) -> Vec<CopyProgressRow> {
        Vec::new()
    }

    fn cancel(&self, _pid: i32) -> bool {
        false
    }

    fn terminate(&self, _pid: i32) -> bool {
        false
    }

    fn started_us(&self) -> i64 {
        0
    }

    fn cache_tiers(&self) -> Vec<TierStats> {
        Vec::new()
    }

    fn clusters(&self) -> Vec<ClusterRow> {
        Vec::new()
    }

    fn workers(&self) -> Vec<WorkerRow> {
        Vec::new()
    }

    fn cluster_events(&self) -> Vec<ClusterEvent> {
        Vec::new()
    }

    fn services(&self) -> Vec<ServiceRow> {
        Vec::new()
    }

    fn log(&self) -> Vec<LogRow> {
        Vec::new()
    }
}
