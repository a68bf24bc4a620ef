//! One session, and the begin and the end of its statements; the steps between are in `execute.rs`: read that first.
//!
//! [`Session::run`] runs a statement of a simple query; `extended.rs` does the same in three messages.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use catalog::Role;
use session_context::{Assignments, FetchedInputs};
use settings::Settings;
use syntax::Parsed;
use syntax::statement::IsolationLevel;
use txn::Isolation;
use types::{Condition, Oid, QueryId, SqlError, SqlResult};

use crate::asked::Asked;
use crate::backends::{Backend, Guard};
use crate::block::{Block, Modes};
use crate::block_status::BlockStatus;
use crate::executable::Executable;
use crate::hang_up::HangUp;
use crate::held::Held;
use crate::instance::Instance;
use crate::life::State;
use crate::notice::Severity;
use crate::numbers::Numbers;
use crate::pasts::Pasts;
use crate::portal::{Life, Portal};
use crate::prepared::Prepared;
use crate::result_sink::ResultSink;
use crate::statement::{Limits, Statement};
use crate::turn::{Admitted, Turn};

/// Session of a client: its settings, transaction, prepared statements and portals; lives as long as the connection.
pub struct Session {
    pub(crate) instance: Arc<Instance>,
    /// Entry in the list of sessions; dropping it removes the session from the list.
    pub(crate) seat: Guard,
    /// Role that logged in; SET ROLE and SET SESSION AUTHORIZATION do not change it.
    pub(crate) login: Arc<Role>,
    pub(crate) block: Block,
    pub(crate) prepared: BTreeMap<String, Arc<Prepared>>,
    pub(crate) portals: BTreeMap<String, Portal>,
    /// Number of cursors declared so far.
    pub(crate) declared: u64,
    pub(crate) notices: Vec<(Severity, SqlError)>,
    /// Pending COMMIT or ROLLBACK, carried out when the statement has ended and can no longer be interrupted.
    pub(crate) ending: Option<Ending>,
    pub(crate) new_oid: Arc<dyn Fn() -> Oid + Send + Sync>,
    /// Settings that functions of the running statement have set (`set_config`).
    pub(crate) assignments: Arc<Assignments>,
    /// Numbers that the session has drawn from sequences.
    pub(crate) numbers: Arc<Numbers>,
    /// Earlier commits and drops, as the planner reads them.
    pub(crate) pasts: Arc<Pasts>,
    /// Historical snapshots and file lists that were fetched to plan the running statement.
    pub(crate) inputs: Arc<FetchedInputs>,
    /// Id of the newest statement, until its failure has been reported.
    pub(crate) query_id: Option<QueryId>,
    /// Cluster slot and worker lease of the running statement; `None` if it needs none.
    pub(crate) admitted: Option<Admitted>,
    /// Idempotency token and work of the running statement; `None` without a token.
    pub(crate) asked: Option<Asked>,
    /// Cluster slot that the session's open statements share.
    pub(crate) turn: Weak<Turn>,
    /// Time spent parsing statements that have not begun yet.
    pub(crate) parsed_in: Duration,
    /// Detects that the client has disconnected while a statement runs.
    pub hung_up: Arc<HangUp>,
}

/// Pending end of a transaction block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// True for COMMIT, false for ROLLBACK.
    pub(crate) keep: bool,
    /// AND CHAIN: a new block with the same modes follows.
    pub(crate) chain: bool,
}

/// Position of a statement in the string of a simple query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// True for the last statement of the string, which ends the implicit transaction.
    pub last: bool,
    /// True if the string has no other statement.
    pub alone: bool,
}

impl Session {
    /// Runs one statement of a simple query to its last row.
    pub async fn run(&mut self, parsed: &Arc<Parsed>, place: Place, client: &mut dyn ResultSink) -> SqlResult<()> {
        let statement = self.begin(&parsed.text);
        let steps = async {
            let started = self.execute(Executable::Text(parsed), place, &statement, client).await?;
            self.send_all(started, &statement, client).await
        };
        let outcome = statement.watch(pin!(steps)).await;
        let outcome = self.end(outcome, place.last).await;
        statement.note(&parsed.text, outcome.as_ref().map(|_| ()), self.settings().log_min_duration_statement());
        self.complete(outcome?, client);
        Ok(())
    }

    /// Begins a statement: assigns its id and enters it in `pg_stat_activity`. It can be stopped from now on.
    pub(crate) fn begin(&mut self, sql: &str) -> Statement {
        self.forget_inputs();
        let limits = Limits { settings: Arc::clone(self.settings()), fixed_us: self.block.fixed_us() };
        let statement = Statement::begin(&self.instance, &self.seat.backend, sql, limits, Arc::clone(&self.hung_up));
        self.query_id = Some(statement.query_id);
        self.admitted = None;
        self.asked = self.asks(sql);
        let parsed_in = std::mem::take(&mut self.parsed_in);
        if !parsed_in.is_zero() {
            statement.add(State::Parse, parsed_in);
        }
        statement
    }

    /// Enters the statement's transaction, implicit or the open block; under READ COMMITTED it sees what is committed
    /// by now.
    pub(crate) fn enter(&mut self, parsed: Option<&Arc<Parsed>>, statement: &Statement) -> SqlResult<()> {
        self.let_go_of_old();
        let may_go_on = !self.block.is_failed() && self.block.check_live().is_ok();
        if !may_go_on && parsed.is_some_and(|parsed| parsed.ends_transaction()) {
            return Ok(());
        }
        self.block.enter(self.default_modes(), statement.started_us)
    }

    /// Ends a statement and returns its command tag: commits or rolls back a transaction that ends with it, and marks
    /// it as failed after an error.
    pub(crate) async fn end(&mut self, outcome: SqlResult<String>, last: bool) -> SqlResult<String> {
        let ending = self.ending.take();
        let tag = self.note_outcome(outcome)?;
        match ending {
            Some(ending) => self.end_block(ending).await,
            None if last && !self.block.is_explicit() => self.commit().await.map(|()| tag),
            None => Ok(tag),
        }
    }

    /// Ends a statement except for its transaction: releases its inputs and its cluster slot, then applies `set_config`
    /// or handles the failure.
    pub(crate) fn note_outcome(&mut self, outcome: SqlResult<String>) -> SqlResult<String> {
        self.forget_inputs();
        self.admitted = None;
        match outcome {
            Ok(tag) => self.take_assignments().map(|()| tag),
            Err(error) => {
                self.fail();
                Err(error)
            }
        }
    }

    /// Releases the inputs of the statement; rows that are still being read hold what they need.
    fn forget_inputs(&mut self) {
        if !self.inputs.is_empty() {
            self.inputs = Arc::default();
        }
    }

    /// Applies what `set_config` has set, from the next statement on.
    fn take_assignments(&mut self) -> SqlResult<()> {
        let assignments = self.assignments.take();
        for set in &assignments {
            self.block.change(set.local, |held| held.settings_mut().set(&set.name, &set.value))?;
        }
        if !assignments.is_empty() {
            self.application_name_changed();
        }
        Ok(())
    }

    /// Creates the session of an authenticated client; `settings` are those of its startup packet.
    pub fn new(
        instance: Arc<Instance>,
        seat: Guard,
        login: Arc<Role>,
        settings: &[(String, String)],
    ) -> SqlResult<Self> {
        let snapshot = instance.transactions.current();
        let mut held = Held {
            settings: Arc::new(Settings::default()),
            session_role: Arc::clone(&login),
            role: Arc::clone(&login),
            cluster: None,
        };
        let defaults = snapshot.state.database().settings.iter().chain(&login.settings);
        for (name, value) in defaults.chain(settings.iter().map(|(name, value)| (name, value))) {
            held.settings_mut().set_default(name, value)?;
        }
        let transactions = Arc::clone(&instance.transactions);
        let numbers = Arc::new(Numbers::new(Arc::clone(&transactions)));
        let pasts = Pasts::new(&transactions);
        let new_oid = Arc::new(move || transactions.allocate_oid());
        let session = Self {
            block: Block::new(Arc::clone(&instance.transactions), held),
            instance,
            seat,
            login,
            prepared: BTreeMap::new(),
            portals: BTreeMap::new(),
            declared: 0,
            notices: Vec::new(),
            ending: None,
            new_oid,
            assignments: Arc::default(),
            numbers,
            pasts,
            inputs: Arc::default(),
            query_id: None,
            admitted: None,
            asked: None,
            turn: crate::turn::no_turn(),
            parsed_in: Duration::ZERO,
            hung_up: Arc::default(),
        };
        session.application_name_changed();
        Ok(session)
    }

    /// Handles a failure: rolls back an implicit transaction, marks a block as failed until it is ended.
    pub fn fail(&mut self) {
        self.ending = None;
        drop(self.assignments.take());
        if !self.block.is_explicit() {
            self.end_portals(false);
        }
        self.block.fail();
        self.application_name_changed();
    }

    /// Rolls back what the client has not committed before it left.
    pub fn abandon(&mut self) {
        self.portals.clear();
        self.block.roll_back();
    }

    /// Commits the transaction and ends its portals; rolls back if it cannot commit.
    pub(crate) async fn commit(&mut self) -> SqlResult<()> {
        if let Err(error) = self.block.check_live().and_then(|()| self.stage_on_commit()) {
            self.block.roll_back();
            self.end_portals(false);
            return Err(error);
        }
        let committed = self.block.commit().await;
        self.end_portals(committed.is_ok());
        committed
    }

    /// Ends the portals of a transaction that has ended; only cursors WITH HOLD live on, those of this transaction if
    /// it has committed.
    pub(crate) fn end_portals(&mut self, committed: bool) {
        self.portals.retain(|_, portal| {
            if portal.life == Life::HeldByCommit && committed {
                portal.life = Life::Session;
            }
            portal.life == Life::Session
        });
    }

    /// Returns the transaction status that ReadyForQuery reports.
    pub fn status(&self) -> BlockStatus {
        self.block.status()
    }

    /// Returns how long the session may wait for its client in its present state, and the error that ends it then.
    pub fn idle_timeout(&self) -> Option<(Duration, SqlError)> {
        let (limit, condition, what) = match self.block.status() {
            BlockStatus::Idle => {
                (self.settings().idle_session_timeout(), Condition::IdleSessionTimeout, "idle-session")
            }
            _ => (
                self.settings().idle_in_transaction_session_timeout(),
                Condition::IdleInTransactionSessionTimeout,
                "idle-in-transaction",
            ),
        };
        Some((limit?, SqlError::new(condition, format!("terminating connection due to {what} timeout"))))
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
        &self.seat.backend
    }

    pub fn held(&self) -> &Held {
        self.block.held()
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.block.held().settings
    }

    /// Returns the value of a setting that is reported to clients in ParameterStatus messages.
    pub fn reported_value(&self, name: &str) -> String {
        let held = self.block.held();
        match name {
            "is_superuser" => if held.session_role.superuser { "on" } else { "off" }.to_owned(),
            "session_authorization" => held.session_role.name.clone(),
            other => held.settings.get(other).expect("every reported name is that of a setting"),
        }
    }

    /// Copies `application_name` to the session's entry in `pg_stat_activity`.
    pub(crate) fn application_name_changed(&self) {
        let name = self.settings().application_name().to_owned();
        self.seat.backend.doing.lock().application_name = name;
    }

    /// Returns the modes of a transaction that sets none itself.
    pub(crate) fn default_modes(&self) -> Modes {
        let settings = self.settings();
        let isolation = match settings.default_isolation() {
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            IsolationLevel::Serializable => Isolation::Serializable,
        };
        Modes { isolation, read_only: settings.default_read_only() }
    }
}
