//! The activity of a server, as the system tables show it; sessions know it.

use std::time::Duration;

use cluster_model::{ClusterEvent, ClusterSpec, Phase, Worker};
use shards::TierUse;
use types::Oid;

/// The sessions and loads of this server.
pub trait Activity: Send + Sync + std::fmt::Debug {
    /// Every session, in the order of their process ids.
    fn sessions(&self) -> Vec<SessionRow>;
    /// Every running COPY.
    fn copies(&self) -> Vec<CopyProgressRow>;
    /// Cancels the statement of a session; whether there is such a session.
    fn cancel(&self, pid: i32) -> bool;
    /// Ends a session; whether there is one.
    fn terminate(&self, pid: i32) -> bool;
    /// When the server started: microseconds since 1970 UTC.
    fn started_us(&self) -> i64;
    /// How the tiers of the cache of columns are used.
    fn cache_tiers(&self) -> Vec<TierUse>;
    /// Every cluster, oldest first.
    fn clusters(&self) -> Vec<ClusterRow>;
    /// Every worker, with those that have gone lately.
    fn workers(&self) -> Vec<WorkerRow>;
    /// What happened to clusters and workers, oldest first.
    fn cluster_events(&self) -> Vec<ClusterEvent>;
    /// Every background service of the server.
    fn services(&self) -> Vec<ServiceRow>;
    /// Statements that have ended, oldest first, as far back as they are kept.
    fn log(&self) -> Vec<LogRow>;
}

/// A session: a row of `pg_stat_activity`. Times are microseconds since 1970 UTC.
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
    /// `active`, `idle`, `idle in transaction`, `idle in transaction (aborted)`.
    pub state: &'static str,
    pub query_id: Option<i64>,
    pub query: String,
    /// What the statement waits for within the server, if for anything.
    pub wait_event: Option<&'static str>,
    /// Bytes of memory that the statement has, and had at most.
    pub memory_bytes: i64,
    pub memory_bytes_most: i64,
    /// What it may have; `None` without a limit of its own.
    pub memory_bytes_max: Option<i64>,
    /// The running statement, or the last one; `None` before the first.
    pub statement: Option<StatementRow>,
}

/// Where a statement is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementRow {
    /// `None` where it needs none.
    pub cluster: Option<String>,
    /// `None` before it has one.
    pub worker: Option<String>,
    /// `queued` while it waits for a cluster, `running` otherwise.
    pub state: &'static str,
    /// How long it waited so far, for a cluster and for its client, and how long it did not.
    pub waiting: Duration,
    pub working: Duration,
}

/// A cluster: a row of `sys.cluster`. Times are microseconds since 1970 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterRow {
    pub spec: ClusterSpec,
    /// Workers that get statements now.
    pub ready: u32,
    pub state: Option<Phase>,
    pub max_running: u32,
    pub running: u32,
    pub queued: u32,
    /// Statements that it let in since the server started; of those, how many had to wait.
    pub admitted: u64,
    pub waited: u64,
    pub longest_wait: Duration,
    pub created_us: i64,
    pub created_by: Option<String>,
    pub changed_us: i64,
    pub changed_by: Option<String>,
}

/// A worker: a row of `sys.worker`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRow {
    /// `None` where its cluster is dropped.
    pub cluster: Option<String>,
    pub worker: Worker,
    /// Bytes of memory that its statements have.
    pub memory_used: u64,
    /// How its cache was used, where it has one of its own.
    pub cache_uses: Option<WorkerCacheUses>,
    /// It is in this process, and reads by the one cache of it.
    pub shares_cache: bool,
}

/// How the cache of a worker was used since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerCacheUses {
    /// How often its tasks found a block in memory, and how often they did not.
    pub hits: u64,
    pub misses: u64,
    /// Shards that it was told of before anybody asked, and has opened.
    pub ahead_shards: u64,
    /// Blocks that it has read of them.
    pub ahead_blocks: u64,
    /// Shards of which it left something out, because it had enough to do or could not be told.
    pub ahead_dropped: u64,
}

/// A background service: a row of `sys.service`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRow {
    pub name: &'static str,
    /// `running`, `failing`, `restarting` or `done`.
    pub state: String,
    /// Microseconds since 1970 UTC, of its last start.
    pub started_us: i64,
    /// Starts after the first.
    pub restarts: u64,
    /// The failure of its work; if its work succeeds, the cause of its last restart.
    pub last_error: Option<String>,
}

/// A statement that has ended: a row of `sys.log_query`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Microseconds since 1970 UTC.
    pub started_us: i64,
    pub query_id: i64,
    pub pid: i32,
    pub role: String,
    pub database: String,
    pub application_name: String,
    pub cluster: Option<String>,
    pub worker: Option<String>,
    /// As much of its text as `pg_stat_activity` shows, and nothing of a password.
    pub query: String,
    /// How long it was in each state of its life, in the order of [`LIFE`].
    pub life: [Duration; LIFE.len()],
    /// Time that it had of the query threads, all of them together.
    pub thread_time: Duration,
    pub memory_bytes_most: i64,
    /// `DONE`, `CANCEL` or `ERROR`.
    pub outcome: &'static str,
    /// Of what it failed with.
    pub sqlstate: Option<&'static str>,
}

/// The states of a statement's life, in their order. In `acquire_resources` it waits for a cluster, in `client` for its client to take rows;
/// in the others it works.
pub const LIFE: [&str; 7] = ["parse", "plan", "assemble", "compile", "acquire_resources", "run", "client"];

/// A running COPY: a row of `pg_stat_progress_copy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyProgressRow {
    pub pid: i32,
    pub table: Oid,
    /// `COPY FROM` or `COPY TO`.
    pub command: &'static str,
    /// `PIPE` or `FILE`.
    pub source: &'static str,
    pub bytes_processed: i64,
    /// 0 when unknown.
    pub bytes_total: i64,
    pub rows_processed: i64,
    pub rows_excluded: i64,
}

/// A server with no sessions, for tests and tools.
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

    fn cache_tiers(&self) -> Vec<TierUse> {
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
