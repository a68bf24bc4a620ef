//! One session, and the begin and the end of its statements; the steps between are in `execute.rs`: read that first.
//!
//! [`Session::run`] runs a statement of a simple query; `extended_query.rs` does the same in three messages.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use catalog::Role;
use session_context::{FetchedInputs, SettingAssignments};
use settings::Settings;
use syntax::ParsedStatement;
use syntax::statement::IsolationLevel;
use txn::Isolation;
use types::{Condition, Oid, QueryId, SqlError, SqlResult};

use crate::backends::{Backend, BackendGuard};
use crate::cluster_slot::{AdmissionGrant, ClusterSlot};
use crate::commit_history::CommitHistory;
use crate::disconnect_watcher::DisconnectWatcher;
use crate::executable_statement::Executable;
use crate::idempotency_token_request::TokenRequest;
use crate::instance::Instance;
use crate::message_severity::Severity;
use crate::portal::{Portal, PortalLifetime};
use crate::prepared_statement::PreparedStatement;
use crate::result_sink::ResultSink;
use crate::running_statement::{Statement, StatementLimits};
use crate::session_sequences::SessionSequences;
use crate::session_state::SessionState;
use crate::statement_timer::StatementState;
use crate::transaction_block::{BlockModes, TransactionBlock};
use crate::transaction_block_status::BlockStatus;

/// Session of a client: its settings, transaction, prepared statements and portals; lives as long as the connection.
pub struct Session {
    pub(crate) instance: Arc<Instance>,
    /// Entry in the list of sessions; dropping it removes the session from the list.
    pub(crate) backend_guard: BackendGuard,
    /// Role that logged in; SET ROLE and SET SESSION AUTHORIZATION do not change it.
    pub(crate) login_role: Arc<Role>,
    pub(crate) transaction_block: TransactionBlock,
    pub(crate) prepared: BTreeMap<String, Arc<PreparedStatement>>,
    pub(crate) portals: BTreeMap<String, Portal>,
    /// Number of cursors declared so far.
    pub(crate) cursors_declared: u64,
    pub(crate) notices: Vec<(Severity, SqlError)>,
    /// Pending COMMIT or ROLLBACK, carried out when the statement has ended and can no longer be interrupted.
    pub(crate) pending_block_end: Option<BlockEnd>,
    pub(crate) new_oid: Arc<dyn Fn() -> Oid + Send + Sync>,
    /// Settings that functions of the running statement have set (`set_config`).
    pub(crate) assignments: Arc<SettingAssignments>,
    /// Numbers that the session has drawn from sequences.
    pub(crate) sequences: Arc<SessionSequences>,
    /// Earlier commits and drops, as the planner reads them.
    pub(crate) commit_history: Arc<CommitHistory>,
    /// Historical snapshots and file lists that were fetched to plan the running statement.
    pub(crate) inputs: Arc<FetchedInputs>,
    /// Id of the newest statement, until its failure has been reported.
    pub(crate) query_id: Option<QueryId>,
    /// Cluster slot and worker lease of the running statement; `None` if it needs none.
    pub(crate) admission: Option<AdmissionGrant>,
    /// Idempotency token and work of the running statement; `None` without a token.
    pub(crate) token_request: Option<TokenRequest>,
    /// Cluster slot that the session's open statements share.
    pub(crate) slot: Weak<ClusterSlot>,
    /// Time spent parsing statements that have not begun yet.
    pub(crate) parse_time: Duration,
    /// Detects that the client has disconnected while a statement runs.
    pub disconnect_watcher: Arc<DisconnectWatcher>,
}

/// Pending end of a transaction block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockEnd {
    /// True for COMMIT, false for ROLLBACK.
    pub(crate) commit: bool,
    /// AND CHAIN: a new block with the same modes follows.
    pub(crate) chain: bool,
}

/// Position of a statement in the string of a simple query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementPosition {
    /// True for the last statement of the string, which ends the implicit transaction.
    pub is_last: bool,
    /// True if the string has no other statement.
    pub is_only: bool,
}

impl Session {
    /// Runs one statement of a simple query to its last row.
    pub async fn run(
        &mut self,
        parsed: &Arc<ParsedStatement>,
        position: StatementPosition,
        client: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let statement = self.begin(&parsed.text);
        let steps = async {
            let started = self.execute(Executable::Text(parsed), position, &statement, client).await?;
            self.send_all(started, &statement, client).await
        };
        let outcome = statement.run_interruptible(pin!(steps)).await;
        let outcome = self.end(outcome, position.is_last).await;
        statement.record(&parsed.text, outcome.as_ref().map(|_| ()), self.settings().log_min_duration_statement());
        self.complete(outcome?, client);
        Ok(())
    }

    /// Begins a statement: assigns its id and enters it in `pg_stat_activity`. It can be stopped from now on.
    pub(crate) fn begin(&mut self, sql: &str) -> Statement {
        self.release_inputs();
        let limits = StatementLimits {
            settings: Arc::clone(self.settings()),
            snapshot_us: self.transaction_block.fixed_snapshot_us(),
        };
        let statement = Statement::begin(
            &self.instance,
            &self.backend_guard.backend,
            sql,
            limits,
            Arc::clone(&self.disconnect_watcher),
        );
        self.query_id = Some(statement.query_id);
        self.admission = None;
        self.token_request = self.token_request_for(sql);
        let parsed_in = std::mem::take(&mut self.parse_time);
        if !parsed_in.is_zero() {
            statement.add_time(StatementState::Parse, parsed_in);
        }
        statement
    }

    /// Enters the statement's transaction, implicit or the open block; under READ COMMITTED it sees what is committed
    /// by now.
    pub(crate) fn enter_transaction(
        &mut self,
        parsed: Option<&Arc<ParsedStatement>>,
        statement: &Statement,
    ) -> SqlResult<()> {
        self.release_old_snapshots();
        let may_go_on = !self.transaction_block.is_failed() && self.transaction_block.check_snapshot().is_ok();
        if !may_go_on && parsed.is_some_and(|parsed| parsed.ends_transaction()) {
            return Ok(());
        }
        self.transaction_block.enter(self.default_modes(), statement.started_us)
    }

    /// Ends a statement and returns its command tag: commits or rolls back a transaction that ends with it, and marks
    /// it as failed after an error.
    pub(crate) async fn end(&mut self, outcome: SqlResult<String>, last: bool) -> SqlResult<String> {
        let ending = self.pending_block_end.take();
        let tag = self.end_without_commit(outcome)?;
        match ending {
            Some(ending) => self.end_block(ending).await,
            None if last && !self.transaction_block.is_explicit() => self.commit().await.map(|()| tag),
            None => Ok(tag),
        }
    }

    /// Ends a statement except for its transaction: releases its inputs and its cluster slot, then applies `set_config`
    /// or handles the failure.
    pub(crate) fn end_without_commit(&mut self, outcome: SqlResult<String>) -> SqlResult<String> {
        self.release_inputs();
        self.admission = None;
        match outcome {
            Ok(tag) => self.apply_assignments().map(|()| tag),
            Err(error) => {
                self.fail();
                Err(error)
            }
        }
    }

    /// Releases the inputs of the statement; rows that are still being read hold what they need.
    fn release_inputs(&mut self) {
        if !self.inputs.is_empty() {
            self.inputs = Arc::default();
        }
    }

    /// Applies what `set_config` has set, from the next statement on.
    fn apply_assignments(&mut self) -> SqlResult<()> {
        let assignments = self.assignments.take();
        for set in &assignments {
            self.transaction_block.change(set.local, |held| held.settings_mut().set(&set.name, &set.value))?;
        }
        if !assignments.is_empty() {
            self.show_application_name();
        }
        Ok(())
    }

    /// Creates the session of an authenticated client; `settings` are those of its startup packet.
    pub fn new(
        instance: Arc<Instance>,
        backend_guard: BackendGuard,
        login: Arc<Role>,
        settings: &[(String, String)],
    ) -> SqlResult<Self> {
        let snapshot = instance.transactions.current();
        let mut state = SessionState {
            settings: Arc::new(Settings::default()),
            session_role: Arc::clone(&login),
            role: Arc::clone(&login),
            cluster: None,
        };
        let defaults = snapshot.state.database().settings.iter().chain(&login.settings);
        for (name, value) in defaults.chain(settings.iter().map(|(name, value)| (name, value))) {
            state.settings_mut().set_default(name, value)?;
        }
        let transactions = Arc::clone(&instance.transactions);
        let numbers = Arc::new(SessionSequences::new(Arc::clone(&transactions)));
        let pasts = CommitHistory::new(&transactions);
        let new_oid = Arc::new(move || transactions.allocate_oid());
        let session = Self {
            transaction_block: TransactionBlock::new(Arc::clone(&instance.transactions), state),
            instance,
            backend_guard,
            login_role: login,
            prepared: BTreeMap::new(),
            portals: BTreeMap::new(),
            cursors_declared: 0,
            notices: Vec::new(),
            pending_block_end: None,
            new_oid,
            assignments: Arc::default(),
            sequences: numbers,
            commit_history: pasts,
            inputs: Arc::default(),
            query_id: None,
            admission: None,
            token_request: None,
            slot: crate::cluster_slot::no_slot(),
            parse_time: Duration::ZERO,
            disconnect_watcher: Arc::default(),
        };
        session.show_application_name();
        Ok(session)
    }

    /// Handles a failure: rolls back an implicit transaction, marks a block as failed until it is ended.
    pub fn fail(&mut self) {
        self.pending_block_end = None;
        drop(self.assignments.take());
        if !self.transaction_block.is_explicit() {
            self.end_portals(false);
        }
        self.transaction_block.fail();
        self.show_application_name();
    }

    /// Rolls back what the client has not committed before it left.
    pub fn abandon(&mut self) {
        self.portals.clear();
        self.transaction_block.roll_back();
    }

    /// Commits the transaction and ends its portals; rolls back if it cannot commit.
    pub(crate) async fn commit(&mut self) -> SqlResult<()> {
        if let Err(error) = self.transaction_block.check_snapshot().and_then(|()| self.stage_on_commit()) {
            self.transaction_block.roll_back();
            self.end_portals(false);
            return Err(error);
        }
        let committed = self.transaction_block.commit().await;
        self.end_portals(committed.is_ok());
        committed
    }

    /// Ends the portals of a transaction that has ended; only cursors WITH HOLD live on, those of this transaction if
    /// it has committed.
    pub(crate) fn end_portals(&mut self, committed: bool) {
        self.portals.retain(|_, portal| {
            if portal.lifetime == PortalLifetime::HoldUntilCommit && committed {
                portal.lifetime = PortalLifetime::Session;
            }
            portal.lifetime == PortalLifetime::Session
        });
    }

    /// Returns the transaction status that ReadyForQuery reports.
    pub fn status(&self) -> BlockStatus {
        self.transaction_block.status()
    }

    /// Returns how long the session may wait for its client in its present state, and the error that ends it then.
    pub fn idle_timeout(&self) -> Option<(Duration, SqlError)> {
        let (limit, condition, state) = match self.transaction_block.status() {
            BlockStatus::Idle => {
                (self.settings().idle_session_timeout(), Condition::IdleSessionTimeout, "idle-session")
            }
            _ => (
                self.settings().idle_in_transaction_session_timeout(),
                Condition::IdleInTransactionSessionTimeout,
                "idle-in-transaction",
            ),
        };
        Some((limit?, SqlError::new(condition, format!("terminating connection due to {state} timeout"))))
    }

    /// Sends the statement's notices, then its completion with this command tag.
    pub(crate) fn complete(&mut self, tag: String, client: &mut dyn ResultSink) {
        for (severity, notice) in self.take_notices() {
            client.notice(severity, &notice);
        }
        client.complete(tag);
    }

    /// Takes the pending notices of the severity that `client_min_messages` lets through.
    pub fn take_notices(&mut self) -> Vec<(Severity, SqlError)> {
        if self.notices.is_empty() {
            return Vec::new();
        }
        let least = match self.settings().client_min_messages() {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Notice,
        };
        let mut notices = std::mem::take(&mut self.notices);
        notices.retain(|(severity, _)| *severity >= least);
        notices
    }

    /// Takes the id of the statement that runs or has just failed; `None` once it has been taken.
    pub fn take_query_id(&mut self) -> Option<QueryId> {
        self.query_id.take()
    }

    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend_guard.backend
    }

    pub fn session_state(&self) -> &SessionState {
        self.transaction_block.session_state()
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.transaction_block.session_state().settings
    }

    /// Returns the value of a setting that is reported to clients in ParameterStatus messages.
    pub fn reported_value(&self, name: &str) -> String {
        let state = self.transaction_block.session_state();
        match name {
            "is_superuser" => if state.session_role.superuser { "on" } else { "off" }.to_owned(),
            "session_authorization" => state.session_role.name.clone(),
            other => state.settings.get(other).expect("every reported name is that of a setting"),
        }
    }

    /// Copies `application_name` to the session's entry in `pg_stat_activity`.
    pub(crate) fn show_application_name(&self) {
        let name = self.settings().application_name().to_owned();
        self.backend_guard.backend.activity.lock().application_name = name;
    }

    /// Returns the modes of a transaction that sets none itself.
    pub(crate) fn default_modes(&self) -> BlockModes {
        let settings = self.settings();
        let isolation = match settings.default_isolation() {
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            IsolationLevel::Serializable => Isolation::Serializable,
        };
        BlockModes { isolation, read_only: settings.default_read_only() }
    }
}
