//! List of sessions and their activity: the source of `pg_stat_activity`, CancelRequest and the connection limit.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cluster_model::WorkerId;
use executor::StatementProgress;
use parking_lot::Mutex;
use scheduler::{QueryMemory, QueryShare};
use session_context::{CopyProgressRow, LogRow, SessionRow, StatementRow};
use types::{Clock, Condition, QueryId, Random, SqlError, SqlResult};

use crate::client_wait::ClientWait;
use crate::interrupt::{InterruptHandle, InterruptReason};
use crate::query_log::without_password;
use crate::statement_timer::{self, StatementTimer};
use crate::transaction_block_status::BlockStatus;

#[cfg(test)]
mod tests;

/// List of all sessions by process id, up to the connection limit.
#[derive(Debug)]
pub struct Backends {
    sessions: Mutex<BTreeMap<i32, Arc<Backend>>>,
    next_pid: AtomicI32,
    connections_max: usize,
    connections_reserved: usize,
    pub started_us: i64,
}

/// Entry of one session in the list, shared with other sessions.
#[derive(Debug)]
pub struct Backend {
    /// Number that stands for the connection, as clients expect one; no process of the operating system.
    pub pid: i32,
    /// Secret that a CancelRequest must show: 4 bytes in protocol 3.0, 32 since.
    pub secret: Bytes,
    pub role: String,
    pub role_oid: types::Oid,
    pub database: String,
    pub peer: SocketAddr,
    pub started_us: i64,
    pub interrupt: InterruptHandle,
    pub client_wait: Arc<ClientWait>,
    clock: Arc<dyn Clock>,
    /// Present activity.
    pub activity: Mutex<SessionActivity>,
}

/// Activity of a session: its state and its running or last statement.
#[derive(Debug, Clone)]
pub struct SessionActivity {
    pub state: BackendState,
    pub application_name: String,
    /// Text of the running statement or the last one, cut to `QUERY_BYTES_SHOWN`.
    pub query: String,
    pub query_id: Option<QueryId>,
    pub query_start_us: Option<i64>,
    pub transaction_start_us: Option<i64>,
    pub state_change_us: i64,
    /// Counters of a running COPY.
    pub copy: Option<Arc<StatementProgress>>,
    /// Memory of the running statement or the last one; `None` if it has no operators.
    pub memory: Option<Arc<QueryMemory>>,
    /// Wait event of the statement while it waits within the server.
    pub wait_event: Option<&'static str>,
    /// Cluster that the statement runs on or waits for.
    pub cluster: Option<Arc<str>>,
    /// Worker that the statement runs on, once it has one.
    pub worker: Option<WorkerId>,
    /// Timer of the running statement or the last one.
    pub(crate) timer: StatementTimer,
    /// Thread time of the running statement or the last one; `None` if it has no operators.
    pub share: Option<Arc<QueryShare>>,
}

/// State of a session: `pg_stat_activity.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendState {
    Active,
    Idle,
    IdleInTransaction,
    IdleInFailedTransaction,
}

impl BackendState {
    pub fn text(self) -> &'static str {
        match self {
            BackendState::Active => "active",
            BackendState::Idle => "idle",
            BackendState::IdleInTransaction => "idle in transaction",
            BackendState::IdleInFailedTransaction => "idle in transaction (aborted)",
        }
    }
}

/// Role, address and parameters of a session to be entered into the list.
#[derive(Debug)]
pub struct NewSession {
    pub role: Arc<catalog::Role>,
    pub database: String,
    pub peer: SocketAddr,
    /// Length of the secret for CancelRequest: 4 bytes in protocol 3.0, 32 since.
    pub secret_bytes: usize,
    pub now_us: i64,
    pub clock: Arc<dyn Clock>,
}

impl Backends {
    /// Number of sessions reserved for superusers by default.
    pub const RESERVED_DEFAULT: usize = 3;

    /// Returns the maximum number of sessions.
    pub fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// Creates an empty list of at most `connections_max` sessions, some of them reserved for superusers.
    pub fn new(connections_max: usize, connections_reserved: usize, started_us: i64) -> Self {
        Self {
            sessions: Mutex::default(),
            next_pid: AtomicI32::new(1),
            connections_max,
            connections_reserved,
            started_us,
        }
    }

    /// Returns the process id of the session that runs a query or ran it last.
    pub fn pid_of(&self, query: QueryId) -> Option<i32> {
        let sessions = self.sessions.lock();
        sessions.values().find(|session| session.activity.lock().query_id == Some(query)).map(|session| session.pid)
    }

    /// Enters a session into the list; it leaves when the returned guard is dropped.
    ///
    /// # Errors
    /// 53300 if there is no room for it.
    pub fn add(self: &Arc<Self>, newcomer: NewSession, random: &dyn Random) -> SqlResult<BackendGuard> {
        let mut secret = vec![0; newcomer.secret_bytes];
        random.fill(&mut secret);
        let mut sessions = self.sessions.lock();
        let role = &newcomer.role;
        if sessions.len() >= self.connections_max {
            return Err(too_many_connections("sorry, too many clients already"));
        }
        if !role.superuser && sessions.len() + self.connections_reserved >= self.connections_max {
            return Err(too_many_connections("remaining connection slots are reserved for superusers"));
        }
        if let Ok(limit) = usize::try_from(role.connection_limit) {
            let role_sessions = sessions.values().filter(|session| session.role_oid == role.oid).count();
            if role_sessions >= limit && !role.superuser {
                return Err(too_many_connections(format!("too many connections for role \"{}\"", role.name)));
            }
        }
        let pid = self.free_pid(&sessions);
        let backend = Arc::new(Backend {
            pid,
            secret: secret.into(),
            role: role.name.clone(),
            role_oid: role.oid,
            database: newcomer.database,
            peer: newcomer.peer,
            started_us: newcomer.now_us,
            interrupt: InterruptHandle::default(),
            client_wait: ClientWait::new(Arc::clone(&newcomer.clock)),
            clock: newcomer.clock,
            activity: Mutex::new(SessionActivity {
                state: BackendState::Idle,
                application_name: String::new(),
                query: String::new(),
                query_id: None,
                query_start_us: None,
                transaction_start_us: None,
                state_change_us: newcomer.now_us,
                copy: None,
                memory: None,
                wait_event: None,
                cluster: None,
                worker: None,
                timer: StatementTimer::begin(Duration::ZERO, Duration::ZERO),
                share: None,
            }),
        });
        sessions.insert(pid, Arc::clone(&backend));
        Ok(BackendGuard { backends: Arc::clone(self), backend })
    }

    fn free_pid(&self, sessions: &BTreeMap<i32, Arc<Backend>>) -> i32 {
        loop {
            let pid = self.next_pid.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if pid != 0 && !sessions.contains_key(&pid) {
                return pid;
            }
        }
    }

    /// CancelRequest: stops the statement of session `pid` if the secret is right.
    pub fn cancel_request(&self, pid: i32, secret: &[u8]) {
        match self.find(pid) {
            Some(backend) if constant_time_eq(&backend.secret, secret) => {
                backend.interrupt.stop_statement(InterruptReason::CancelRequest)
            }
            Some(_) => tracing::info!(pid, "cancel request rejected: wrong secret"),
            None => tracing::info!(pid, "cancel request ignored: the session does not exist"),
        }
    }

    pub fn find(&self, pid: i32) -> Option<Arc<Backend>> {
        self.sessions.lock().get(&pid).map(Arc::clone)
    }

    pub fn count(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Returns all sessions by process id.
    pub fn all(&self) -> Vec<Arc<Backend>> {
        self.sessions.lock().values().map(Arc::clone).collect()
    }

    pub fn terminate_all(&self) {
        for backend in self.all() {
            backend.interrupt.terminate();
        }
    }
}

/// Whether two secrets are equal, compared in constant time.
fn constant_time_eq(ours: &[u8], theirs: &[u8]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn too_many_connections(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::TooManyConnections, message)
}

impl Backend {
    /// Returns the session's row of `pg_stat_activity`.
    pub fn activity_row(&self) -> SessionRow {
        let doing = self.activity.lock();
        let memory = doing.memory.as_ref().map(|memory| memory.used()).unwrap_or_default();
        let bytes = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
        SessionRow {
            pid: self.pid,
            role: self.role.clone(),
            role_oid: self.role_oid,
            database: self.database.clone(),
            application_name: doing.application_name.clone(),
            client_addr: Some(self.peer.ip().to_canonical().to_string()),
            client_port: Some(i32::from(self.peer.port())),
            backend_start_us: self.started_us,
            transaction_start_us: doing.transaction_start_us,
            query_start_us: doing.query_start_us,
            state_change_us: doing.state_change_us,
            state: doing.state.text(),
            query_id: doing.query_id.map(|id| id.0.cast_signed()),
            query: without_password(&doing.query),
            wait_event: doing.wait_event,
            memory_bytes: bytes(memory.current),
            memory_bytes_peak: bytes(memory.peak),
            memory_bytes_max: memory.limit.map(bytes),
            statement: doing.query_id.map(|_| self.statement_row(&doing)),
        }
    }

    fn statement_row(&self, doing: &SessionActivity) -> StatementRow {
        let [parse, plan, assemble, compile, acquire, run, client] =
            doing.timer.times_until(self.clock.monotonic(), self.client_wait.total());
        StatementRow {
            cluster: doing.cluster.as_deref().map(str::to_owned),
            worker: doing.worker.map(|worker| worker.to_string()),
            state: if doing.timer.state() == statement_timer::StatementState::AcquireResources {
                "queued"
            } else {
                "running"
            },
            waiting_time: acquire + client,
            working_time: parse + plan + assemble + compile + run,
        }
    }

    /// Ends the statement now, and returns its row for the query log.
    pub fn end_statement(&self, started_us: i64, outcome: &'static str, sqlstate: Option<&'static str>) -> LogRow {
        let (now, client) = (self.clock.monotonic(), self.client_wait.total());
        let mut doing = self.activity.lock();
        doing.timer.end(now);
        let memory = doing.memory.as_ref().map(|memory| memory.used()).unwrap_or_default();
        LogRow {
            started_us,
            query_id: doing.query_id.map_or(0, |id| id.0.cast_signed()),
            pid: self.pid,
            role: self.role.clone(),
            database: self.database.clone(),
            application_name: doing.application_name.clone(),
            cluster: doing.cluster.as_deref().map(str::to_owned),
            worker: doing.worker.map(|worker| worker.to_string()),
            query: without_password(&doing.query),
            phases: doing.timer.times_until(now, client),
            thread_time: doing.share.as_ref().map(|share| share.thread_time()).unwrap_or_default(),
            memory_bytes_peak: i64::try_from(memory.peak).unwrap_or(i64::MAX),
            outcome,
            sqlstate,
        }
    }

    /// Returns the session's row of `pg_stat_progress_copy`; `None` if no COPY runs.
    pub fn copy_row(&self) -> Option<CopyProgressRow> {
        let progress = self.activity.lock().copy.as_ref()?.copy()?;
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Some(CopyProgressRow {
            pid: self.pid,
            table: progress.kind.table,
            command: progress.kind.command,
            source: progress.kind.medium,
            bytes_processed: count(progress.bytes_processed),
            bytes_total: count(progress.bytes_total),
            rows_processed: count(progress.tuples_processed),
            rows_excluded: count(progress.tuples_excluded),
        })
    }

    /// Shows the progress of a COPY as long as the returned guard lives.
    pub fn show_copy(self: &Arc<Self>, progress: &Arc<StatementProgress>) -> CopyProgressGuard {
        self.activity.lock().copy = Some(Arc::clone(progress));
        CopyProgressGuard(Arc::clone(self))
    }

    /// Shows the wait event of the statement as long as the returned guard lives.
    pub fn show_wait(self: &Arc<Self>, wait_event: &'static str) -> WaitEventGuard {
        self.activity.lock().wait_event = Some(wait_event);
        WaitEventGuard(Arc::clone(self))
    }

    /// Shows a statement that begins; `now` is monotonic time.
    pub fn begin_statement(&self, query: &str, query_id: QueryId, now_us: i64, now: Duration) {
        let client_before = self.client_wait.total();
        let mut doing = self.activity.lock();
        doing.state = BackendState::Active;
        doing.timer = StatementTimer::begin(now, client_before);
        (doing.memory, doing.share, doing.cluster, doing.worker) = (None, None, None, None);
        doing.query.clear();
        doing.query.push_str(truncate_query(query));
        doing.query_id = Some(query_id);
        doing.query_start_us = Some(now_us);
        doing.transaction_start_us.get_or_insert(now_us);
        doing.state_change_us = now_us;
    }

    /// Shows that the session waits for its client.
    pub fn begin_idle(&self, status: BlockStatus, now_us: i64) {
        let mut doing = self.activity.lock();
        doing.state = match status {
            BlockStatus::Idle => BackendState::Idle,
            BlockStatus::Open => BackendState::IdleInTransaction,
            BlockStatus::Failed => BackendState::IdleInFailedTransaction,
        };
        if status == BlockStatus::Idle {
            doing.transaction_start_us = None;
        }
        doing.state_change_us = now_us;
    }
}

/// Guard of a running COPY in `pg_stat_progress_copy`.
#[derive(Debug)]
pub struct CopyProgressGuard(Arc<Backend>);

impl Drop for CopyProgressGuard {
    fn drop(&mut self) {
        self.0.activity.lock().copy = None;
    }
}

/// Guard of a wait in `pg_stat_activity`.
#[derive(Debug)]
pub struct WaitEventGuard(Arc<Backend>);

impl Drop for WaitEventGuard {
    fn drop(&mut self) {
        self.0.activity.lock().wait_event = None;
    }
}

/// Bytes of a statement's text that the list stores; PostgreSQL stores 1,024.
const QUERY_BYTES_SHOWN: usize = 1024;

fn truncate_query(query: &str) -> &str {
    let mut end = query.len().min(QUERY_BYTES_SHOWN);
    while !query.is_char_boundary(end) {
        end -= 1;
    }
    &query[..end]
}

/// Guard that removes a session from the list when dropped.
#[derive(Debug)]
pub struct BackendGuard {
    backends: Arc<Backends>,
    pub backend: Arc<Backend>,
}

impl Drop for BackendGuard {
    fn drop(&mut self) {
        self.backends.sessions.lock().remove(&self.backend.pid);
    }
}
