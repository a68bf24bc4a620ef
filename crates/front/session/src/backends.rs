//! Who is connected and what they do: the list behind `pg_stat_activity`, CancelRequest and the connection limit.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cluster_model::WorkerId;
use executor::Progress;
use parking_lot::Mutex;
use scheduler::{QueryMemory, QueryShare};
use session_context::{CopyProgressRow, LogRow, SessionRow, StatementRow};
use types::{Clock, Condition, QueryId, Random, SqlError, SqlResult};

use crate::block_status::BlockStatus;
use crate::client_wait::ClientWait;
use crate::interrupt::{Interrupt, Reason};
use crate::life::{self, Life};
use crate::query_log::without_password;

#[cfg(test)]
mod tests;

/// Every session, by process id.
#[derive(Debug)]
pub struct Backends {
    sessions: Mutex<BTreeMap<i32, Arc<Backend>>>,
    next_pid: AtomicI32,
    connections_max: usize,
    connections_reserved: usize,
    pub started_us: i64,
}

/// One session as others see it.
#[derive(Debug)]
pub struct Backend {
    /// No process of the operating system: a number that stands for the connection, as clients expect one.
    pub pid: i32,
    /// What a CancelRequest must show; 32 bytes, of which protocol 3.0 uses four.
    pub secret: Bytes,
    pub role: String,
    pub role_oid: types::Oid,
    pub database: String,
    pub peer: SocketAddr,
    pub started_us: i64,
    pub interrupt: Interrupt,
    pub client_wait: Arc<ClientWait>,
    clock: Arc<dyn Clock>,
    pub doing: Mutex<Doing>,
}

/// What a session does right now.
#[derive(Debug, Clone)]
pub struct Doing {
    pub state: State,
    pub application_name: String,
    /// The running statement, or the last one.
    pub query: String,
    pub query_id: Option<QueryId>,
    pub query_start_us: Option<i64>,
    pub transaction_start_us: Option<i64>,
    pub state_change_us: i64,
    /// Counters of a running COPY.
    pub copy: Option<Arc<Progress>>,
    /// Of the running statement, or the last one, if it has or had operators.
    pub memory: Option<Arc<QueryMemory>>,
    /// What its statement waits for, within the server.
    pub wait_event: Option<&'static str>,
    /// The cluster that its statement runs on or waits for, and the worker once it has one.
    pub cluster: Option<Arc<str>>,
    pub worker: Option<WorkerId>,
    pub(crate) life: Life,
    /// What its statement has had of the threads, if it has or had operators.
    pub share: Option<Arc<QueryShare>>,
}

/// `pg_stat_activity.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Active,
    Idle,
    IdleInTransaction,
    IdleInFailedTransaction,
}

impl State {
    pub fn text(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Idle => "idle",
            State::IdleInTransaction => "idle in transaction",
            State::IdleInFailedTransaction => "idle in transaction (aborted)",
        }
    }
}

/// Who a new session belongs to.
#[derive(Debug)]
pub struct Newcomer {
    pub role: Arc<catalog::Role>,
    pub database: String,
    pub peer: SocketAddr,
    /// Bytes of the secret for cancelling: 4 in protocol 3.0, 32 since.
    pub secret_bytes: usize,
    pub now_us: i64,
    pub clock: Arc<dyn Clock>,
}

impl Backends {
    /// Sessions that are kept for superusers.
    pub const RESERVED: usize = 3;

    /// The limit of sessions at once.
    pub fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// An empty list of at most `connections_max` sessions, some of them reserved for superusers.
    pub fn new(connections_max: usize, connections_reserved: usize, started_us: i64) -> Self {
        Self {
            sessions: Mutex::default(),
            next_pid: AtomicI32::new(1),
            connections_max,
            connections_reserved,
            started_us,
        }
    }

    /// The session that runs a query.
    pub fn pid_of(&self, query: QueryId) -> Option<i32> {
        let sessions = self.sessions.lock();
        sessions.values().find(|session| session.doing.lock().query_id == Some(query)).map(|session| session.pid)
    }

    /// Enters a session into the list; it leaves when the returned guard is dropped.
    ///
    /// # Errors
    /// 53300 where there is no room for it.
    pub fn enter(self: &Arc<Self>, newcomer: Newcomer, random: &dyn Random) -> SqlResult<Guard> {
        let mut secret = vec![0; newcomer.secret_bytes];
        random.fill(&mut secret);
        let mut sessions = self.sessions.lock();
        let role = &newcomer.role;
        if sessions.len() >= self.connections_max {
            return Err(too_many("sorry, too many clients already"));
        }
        if !role.superuser && sessions.len() + self.connections_reserved >= self.connections_max {
            return Err(too_many("remaining connection slots are reserved for superusers"));
        }
        if let Ok(limit) = usize::try_from(role.connection_limit) {
            let mine = sessions.values().filter(|session| session.role_oid == role.oid).count();
            if mine >= limit && !role.superuser {
                return Err(too_many(format!("too many connections for role \"{}\"", role.name)));
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
            interrupt: Interrupt::default(),
            client_wait: ClientWait::new(Arc::clone(&newcomer.clock)),
            clock: newcomer.clock,
            doing: Mutex::new(Doing {
                state: State::Idle,
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
                life: Life::begin(Duration::ZERO, Duration::ZERO),
                share: None,
            }),
        });
        sessions.insert(pid, Arc::clone(&backend));
        Ok(Guard { backends: Arc::clone(self), backend })
    }

    fn free_pid(&self, sessions: &BTreeMap<i32, Arc<Backend>>) -> i32 {
        loop {
            let pid = self.next_pid.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if pid != 0 && !sessions.contains_key(&pid) {
                return pid;
            }
        }
    }

    /// CancelRequest: stops the statement of session `pid`, if the secret is its own.
    pub fn cancel_request(&self, pid: i32, secret: &[u8]) {
        match self.find(pid) {
            Some(backend) if same(&backend.secret, secret) => backend.interrupt.stop_statement(Reason::User),
            Some(_) => tracing::info!(pid, "wrong key in cancel request"),
            None => tracing::info!(pid, "cancel request for a session that does not exist"),
        }
    }

    pub fn find(&self, pid: i32) -> Option<Arc<Backend>> {
        self.sessions.lock().get(&pid).map(Arc::clone)
    }

    pub fn count(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Every session, by process id.
    pub fn all(&self) -> Vec<Arc<Backend>> {
        self.sessions.lock().values().map(Arc::clone).collect()
    }

    pub fn terminate_all(&self) {
        for backend in self.all() {
            backend.interrupt.terminate();
        }
    }
}

/// Whether two secrets are equal, in a time that does not tell how much of them is.
fn same(ours: &[u8], theirs: &[u8]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn too_many(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::TooManyConnections, message)
}

impl Backend {
    pub fn row(&self) -> SessionRow {
        let doing = self.doing.lock();
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
            query: doing.query.clone(),
            wait_event: doing.wait_event,
            memory_bytes: bytes(memory.now),
            memory_bytes_most: bytes(memory.most),
            memory_bytes_max: memory.limit.map(bytes),
            statement: doing.query_id.map(|_| self.statement_row(&doing)),
        }
    }

    fn statement_row(&self, doing: &Doing) -> StatementRow {
        let [parse, plan, assemble, compile, acquire, run, client] =
            doing.life.by(self.clock.monotonic(), self.client_wait.so_far());
        StatementRow {
            cluster: doing.cluster.as_deref().map(str::to_owned),
            worker: doing.worker.map(|worker| worker.to_string()),
            state: if doing.life.state() == life::State::AcquireResources { "queued" } else { "running" },
            waiting: acquire + client,
            working: parse + plan + assemble + compile + run,
        }
    }

    /// The statement has ended now, like this; what is kept of it.
    pub fn ended(&self, started_us: i64, outcome: &'static str, sqlstate: Option<&'static str>) -> LogRow {
        let (now, client) = (self.clock.monotonic(), self.client_wait.so_far());
        let mut doing = self.doing.lock();
        doing.life.end(now);
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
            life: doing.life.by(now, client),
            thread_time: doing.share.as_ref().map(|share| share.used()).unwrap_or_default(),
            memory_bytes_most: i64::try_from(memory.most).unwrap_or(i64::MAX),
            outcome,
            sqlstate,
        }
    }

    pub fn copy_row(&self) -> Option<CopyProgressRow> {
        let progress = self.doing.lock().copy.as_ref()?.copy()?;
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

    /// A COPY shows its counters as long as the returned value lives.
    pub fn copying(self: &Arc<Self>, progress: &Arc<Progress>) -> Copying {
        self.doing.lock().copy = Some(Arc::clone(progress));
        Copying(Arc::clone(self))
    }

    /// The statement waits as long as the returned value lives.
    pub fn waiting(self: &Arc<Self>, wait_event: &'static str) -> Waiting {
        self.doing.lock().wait_event = Some(wait_event);
        Waiting(Arc::clone(self))
    }

    /// A statement begins; `now` is monotonic time.
    pub fn work(&self, query: &str, query_id: QueryId, now_us: i64, now: Duration) {
        let client_before = self.client_wait.so_far();
        let mut doing = self.doing.lock();
        doing.state = State::Active;
        doing.life = Life::begin(now, client_before);
        (doing.memory, doing.share, doing.cluster, doing.worker) = (None, None, None, None);
        doing.query.clear();
        doing.query.push_str(shown(query));
        doing.query_id = Some(query_id);
        doing.query_start_us = Some(now_us);
        doing.transaction_start_us.get_or_insert(now_us);
        doing.state_change_us = now_us;
    }

    /// The session waits for its client.
    pub fn rest(&self, status: BlockStatus, now_us: i64) {
        let mut doing = self.doing.lock();
        doing.state = match status {
            BlockStatus::Idle => State::Idle,
            BlockStatus::Open => State::IdleInTransaction,
            BlockStatus::Failed => State::IdleInFailedTransaction,
        };
        if status == BlockStatus::Idle {
            doing.transaction_start_us = None;
        }
        doing.state_change_us = now_us;
    }
}

/// A running COPY in `pg_stat_progress_copy`.
#[derive(Debug)]
pub struct Copying(Arc<Backend>);

impl Drop for Copying {
    fn drop(&mut self) {
        self.0.doing.lock().copy = None;
    }
}

/// A wait in `pg_stat_activity`.
#[derive(Debug)]
pub struct Waiting(Arc<Backend>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.doing.lock().wait_event = None;
    }
}

/// As much of a statement as the list keeps; PostgreSQL keeps 1,024 bytes.
const QUERY_BYTES_SHOWN: usize = 1024;

fn shown(query: &str) -> &str {
    let mut end = query.len().min(QUERY_BYTES_SHOWN);
    while !query.is_char_boundary(end) {
        end -= 1;
    }
    &query[..end]
}

/// Keeps a session in the list while it lives.
#[derive(Debug)]
pub struct Guard {
    backends: Arc<Backends>,
    pub backend: Arc<Backend>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.backends.sessions.lock().remove(&self.backend.pid);
    }
}
