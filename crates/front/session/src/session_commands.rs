//! Statements about the session itself: settings, roles, transaction blocks, prepared statements and cursors.

use std::sync::Arc;

use binder::SessionCommand;
use catalog::Role;
use settings::Settings;
use syntax::statement::{Discard, IsolationLevel, TransactionModes};
use txn::Isolation;
use types::{Condition, Oid, SqlError, SqlResult};

use crate::message_severity::Severity;
use crate::prepared_statement::{duplicate_statement, unknown_statement};
use crate::result_sink::ResultSink;
use crate::retry_reason::AttemptResult;
use crate::running_statement::Statement;
use crate::session::{BlockEnd, Session, StatementPosition};
use crate::started_statement::StartedStatement;
use crate::transaction_block::{BlockModes, outside_block_error};

impl Session {
    /// Runs a session command. COMMIT and ROLLBACK are only recorded here; [`Session::end`] carries them out.
    pub(crate) async fn command(
        &mut self,
        command: SessionCommand,
        place: StatementPosition,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<StartedStatement> {
        let done = |tag: &str| Ok(StartedStatement::Done(tag.to_owned()));
        match command {
            SessionCommand::Set { name, value, local } => {
                self.set(&name, value.as_deref(), local, place)?;
                done("SET")
            }
            SessionCommand::Reset(name) => {
                self.transaction_block.change(false, |held| match &name {
                    Some(name) => held.settings_mut().reset(name),
                    None => {
                        held.settings_mut().reset_all();
                        Ok(())
                    }
                })?;
                self.show_application_name();
                done("RESET")
            }
            SessionCommand::SetTransaction { modes, session: true } => {
                self.set_characteristics(modes)?;
                done("SET")
            }
            SessionCommand::SetTransaction { modes, session: false } => {
                self.warn_if_local_outside_block(true, place, "SET TRANSACTION");
                self.set_modes(modes)?;
                done("SET")
            }
            SessionCommand::SetRole { role, local } => {
                self.warn_if_local_outside_block(local, place, "SET LOCAL");
                self.set_role(role.as_deref(), local)?;
                done("SET")
            }
            SessionCommand::SetSessionAuthorization { role, local } => {
                self.warn_if_local_outside_block(local, place, "SET LOCAL");
                self.set_session_authorization(role.as_deref(), local)?;
                done("SET")
            }
            SessionCommand::Show(plan) => Ok(StartedStatement::rows(self.open_query(&plan, statement).await?, "SHOW")),
            SessionCommand::Begin(modes) => {
                let modes = self.modes(modes, None)?;
                if !self.transaction_block.begin(modes, statement.started_us)? {
                    self.warn(Condition::ActiveTransaction, "there is already a transaction in progress");
                }
                done("BEGIN")
            }
            SessionCommand::Commit { chain } => Ok(self.record_end(true, chain, place)?),
            SessionCommand::Rollback { chain } => Ok(self.record_end(false, chain, place)?),
            SessionCommand::Savepoint(name) => {
                self.transaction_block.savepoint(&name, self.cursors_declared)?;
                done("SAVEPOINT")
            }
            SessionCommand::RollbackTo(name) => {
                let declared = self.transaction_block.roll_back_to(&name)?;
                // Cursors that were declared since the savepoint are rolled back too.
                self.portals.retain(|_, portal| portal.cursor_number.is_none_or(|number| number < declared));
                done("ROLLBACK")
            }
            SessionCommand::Release(name) => {
                self.transaction_block.release(&name)?;
                done("RELEASE")
            }
            SessionCommand::Prepare { name, types, statement: parsed } => {
                if self.prepared.contains_key(&name) {
                    return Err(duplicate_statement(&name).into());
                }
                let prepared = self.prepare_parsed(Arc::new(*parsed), &types, statement).await?;
                self.prepared.insert(name, Arc::new(prepared));
                done("PREPARE")
            }
            SessionCommand::Execute { name, arguments } => {
                Box::pin(self.execute_prepared(&name, &arguments, place, statement, client)).await
            }
            SessionCommand::Deallocate(Some(name)) => {
                self.prepared.remove(&name).ok_or_else(|| unknown_statement(&name))?;
                done("DEALLOCATE")
            }
            SessionCommand::Deallocate(None) => {
                self.prepared.clear();
                self.sequences.forget();
                done("DEALLOCATE ALL")
            }
            SessionCommand::Declare { name, query, hold, scroll, binary } => {
                self.declare(name, &query, hold, scroll, binary, place, statement).await?;
                done("DECLARE CURSOR")
            }
            SessionCommand::Fetch { cursor, direction } => Ok(self.fetch(cursor, direction).await?),
            SessionCommand::Move { cursor, direction } => Ok(self.move_cursor(&cursor, direction).await?),
            SessionCommand::Close(name) => Ok(self.close_cursor(name.as_deref())?),
            SessionCommand::Discard(what) => Ok(self.discard(what, place)?),
            SessionCommand::Vacuum { tables } => {
                self.vacuum(tables, statement).await?;
                done("VACUUM")
            }
            SessionCommand::Cluster(command) => Ok(self.cluster_command(command).await?),
            SessionCommand::CheckStorage => Ok(self.check_storage(statement).await?),
            SessionCommand::NoEffect(tag) => done(tag),
        }
    }

    /// VACUUM: flushes, compacts and redistributes tables now, which the server otherwise does in the background.
    async fn vacuum(&mut self, tables: Option<Vec<Oid>>, statement: &Statement) -> SqlResult<()> {
        self.refuse_in_block("VACUUM")?;
        let context = self.statement_context(statement);
        let tables = tables.unwrap_or_else(|| context.snapshot.tables().map(|table| table.oid).collect());
        for table in tables {
            let Some(definition) = context.snapshot.table(table) else { continue };
            if !context.owns(definition.owner) {
                let message = format!("permission denied to vacuum \"{}\", skipping it", definition.name);
                self.notices.push((Severity::Warning, SqlError::new(Condition::InsufficientPrivilege, message)));
                continue;
            }
            let maintenance = self.instance.execution.maintenance();
            maintenance.flush(table).await?;
            maintenance.compact(table).await?;
            maintenance.redistribute(table).await?;
        }
        Ok(())
    }

    /// Refuses a command in a transaction block with `25001`.
    pub(crate) fn refuse_in_block(&self, command: &str) -> SqlResult<()> {
        if !self.transaction_block.is_explicit() {
            return Ok(());
        }
        let message = format!("{command} cannot run inside a transaction block");
        Err(SqlError::new(Condition::ActiveTransaction, message))
    }

    /// Runs SET and SET LOCAL; the value `None` is DEFAULT. Settings `transaction_…` change the modes of the
    /// transaction.
    fn set(&mut self, name: &str, value: Option<&str>, local: bool, place: StatementPosition) -> SqlResult<()> {
        let lower = name.to_ascii_lowercase();
        if let Some(mode) = lower.strip_prefix("transaction_").filter(|mode| *mode != "deferrable") {
            // Validated and normalized as any other setting.
            let mut settings = Settings::clone(self.settings());
            settings.set(name, value.unwrap_or(if mode == "isolation" { "read committed" } else { "off" }))?;
            let text = settings.get(name)?;
            let modes = match mode {
                "isolation" => TransactionModes { isolation: Some(parse_isolation(&text)), ..Default::default() },
                _ => TransactionModes { read_only: Some(text == "on"), ..Default::default() },
            };
            return self.set_modes(modes);
        }
        self.warn_if_local_outside_block(local, place, "SET LOCAL");
        self.transaction_block.change(local, |held| match value {
            Some(value) => held.settings_mut().set(name, value),
            None => held.settings_mut().reset(name),
        })?;
        self.show_application_name();
        Ok(())
    }

    fn set_modes(&mut self, requested: TransactionModes) -> SqlResult<()> {
        let modes = self.modes(requested, self.transaction_block.modes())?;
        self.transaction_block.set_modes(modes)
    }

    /// Records COMMIT or ROLLBACK as pending; outside of a block PostgreSQL's warning or error.
    fn record_end(&mut self, keep: bool, chain: bool, place: StatementPosition) -> SqlResult<StartedStatement> {
        let word = if keep { "COMMIT" } else { "ROLLBACK" };
        if !self.transaction_block.is_explicit() {
            if chain {
                return Err(outside_block_error(&format!("{word} AND CHAIN")));
            }
            self.warn(Condition::NoActiveTransaction, "there is no transaction in progress");
            if place.is_only && place.is_last {
                return Ok(StartedStatement::Done(word.to_owned()));
            }
            // Earlier statements of the same string, or messages since the last Sync, are in the implicit transaction
            // that it ends.
        }
        self.pending_block_end = Some(BlockEnd { commit: keep, chain });
        Ok(StartedStatement::Done(word.to_owned()))
    }

    /// Carries out COMMIT or ROLLBACK and returns the command tag; nothing interrupts a commit.
    pub(crate) async fn end_block(&mut self, ending: BlockEnd) -> SqlResult<String> {
        let modes = self.transaction_block.modes();
        let keep = ending.commit && !self.transaction_block.is_failed();
        if keep {
            self.commit().await?;
        } else {
            self.end_portals(false);
            self.transaction_block.roll_back();
            self.show_application_name();
        }
        if let (true, Some(modes)) = (ending.chain, modes) {
            self.transaction_block.begin(modes, self.instance.clock.now_us())?;
        }
        Ok(if keep { "COMMIT" } else { "ROLLBACK" }.to_owned())
    }

    /// Returns the modes of a transaction: those set by the statement, else those of `base`, else the session's
    /// defaults.
    fn modes(&self, requested: TransactionModes, base: Option<BlockModes>) -> SqlResult<BlockModes> {
        let base = base.unwrap_or_else(|| self.default_modes());
        let read_only = requested.read_only.unwrap_or(base.read_only);
        let isolation = match requested.isolation {
            None => base.isolation,
            Some(IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted) => Isolation::ReadCommitted,
            Some(IsolationLevel::RepeatableRead) => Isolation::RepeatableRead,
            Some(IsolationLevel::Serializable) => Isolation::Serializable,
        };
        Ok(BlockModes { isolation, read_only })
    }

    /// SET SESSION CHARACTERISTICS: sets the default modes of transactions.
    fn set_characteristics(&mut self, modes: TransactionModes) -> SqlResult<()> {
        let isolation = modes.isolation.map(isolation_name);
        self.transaction_block.change(false, |held| {
            if let Some(isolation) = isolation {
                held.settings_mut().set("default_transaction_isolation", isolation)?;
            }
            if let Some(read_only) = modes.read_only {
                let value = if read_only { "on" } else { "off" };
                held.settings_mut().set("default_transaction_read_only", value)?;
            }
            Ok(())
        })
    }

    fn set_role(&mut self, name: Option<&str>, local: bool) -> SqlResult<()> {
        let session_role = Arc::clone(&self.transaction_block.session_state().session_role);
        let role = match name {
            None => session_role,
            Some(name) => {
                let role = self.find_role(name)?;
                if !session_role.superuser && session_role.oid != role.oid {
                    let message = format!("permission denied to set role \"{name}\"");
                    return Err(SqlError::new(Condition::InsufficientPrivilege, message));
                }
                role
            }
        };
        self.transaction_block.change(local, |held| {
            held.role = Arc::clone(&role);
            Ok(())
        })
    }

    fn set_session_authorization(&mut self, name: Option<&str>, local: bool) -> SqlResult<()> {
        let role = match name {
            None => Arc::clone(&self.login_role),
            Some(name) => {
                let role = self.find_role(name)?;
                if !self.login_role.superuser && self.login_role.oid != role.oid {
                    let message = format!("permission denied to set session authorization \"{name}\"");
                    return Err(SqlError::new(Condition::InsufficientPrivilege, message));
                }
                role
            }
        };
        self.transaction_block.change(local, |held| {
            held.session_role = Arc::clone(&role);
            held.role = Arc::clone(&role);
            Ok(())
        })
    }

    fn find_role(&mut self, name: &str) -> SqlResult<Arc<Role>> {
        let view = self.transaction_block.transaction().view();
        view.state
            .role_by_name(name)
            .map(Arc::clone)
            .ok_or_else(|| SqlError::new(Condition::InvalidParameterValue, format!("role \"{name}\" does not exist")))
    }

    /// DISCARD: resets parts of the session, or all of it.
    fn discard(&mut self, what: Discard, place: StatementPosition) -> SqlResult<StartedStatement> {
        let tag = match what {
            Discard::Plans => "DISCARD PLANS",
            Discard::Sequences => {
                self.sequences.forget();
                "DISCARD SEQUENCES"
            }
            Discard::Temporary => {
                self.discard_temporary()?;
                "DISCARD TEMP"
            }
            Discard::All => {
                if self.transaction_block.is_explicit() || !place.is_only {
                    let message = "DISCARD ALL cannot run inside a transaction block";
                    return Err(SqlError::new(Condition::ActiveTransaction, message));
                }
                self.discard_temporary()?;
                self.portals.clear();
                self.prepared.clear();
                let login = Arc::clone(&self.login_role);
                self.transaction_block.change(false, |held| {
                    held.role = Arc::clone(&login);
                    held.session_role = Arc::clone(&login);
                    held.cluster = None;
                    held.settings_mut().reset_all();
                    Ok(())
                })?;
                self.show_application_name();
                "DISCARD ALL"
            }
        };
        Ok(StartedStatement::Done(tag.to_owned()))
    }

    /// Warns, as PostgreSQL does, of a setting for the transaction only outside of a block, where it has no effect.
    fn warn_if_local_outside_block(&mut self, local: bool, place: StatementPosition, command: &str) {
        if local && !self.transaction_block.is_explicit() && place.is_only {
            let notice = outside_block_error(command);
            self.notices.push((Severity::Warning, notice));
        }
    }

    fn warn(&mut self, condition: Condition, message: &str) {
        self.notices.push((Severity::Warning, SqlError::new(condition, message)));
    }
}

fn isolation_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "read uncommitted",
        IsolationLevel::ReadCommitted => "read committed",
        IsolationLevel::RepeatableRead => "repeatable read",
        IsolationLevel::Serializable => "serializable",
    }
}

fn parse_isolation(name: &str) -> IsolationLevel {
    match name {
        "serializable" => IsolationLevel::Serializable,
        "repeatable read" => IsolationLevel::RepeatableRead,
        "read uncommitted" => IsolationLevel::ReadUncommitted,
        _ => IsolationLevel::ReadCommitted,
    }
}
