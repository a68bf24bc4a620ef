//! What the server is doing right now, as the system tables show it; the gateway knows.

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
}

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
}
