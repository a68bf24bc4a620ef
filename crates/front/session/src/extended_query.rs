//! The extended protocol: Parse, Bind, Describe, Execute, Close and Sync.
//!
//! Parse plans a statement to find the types of its parameters and columns, Bind plans it for the values of its
//! parameters, Execute runs it and may be suspended. Everything up to Sync is one implicit transaction.

use std::pin::pin;
use std::sync::Arc;

use planner::PreparedPlan;
use session_context::ScalarValue;
use syntax::{Expr, ParsedStatement, Value};
use types::{Condition, SqlError, SqlResult, SqlType};
use value_codec::decode;
use value_codec::encode::Format;

use crate::bound_statement::{BoundPlan, BoundStatement};
use crate::cached_key_lookups::CachedKeyLookups;
use crate::cached_plan_validity::PlanDependencies;
use crate::executable_statement::Executable;
use crate::extended_query_requests::{BindRequest, StatementDescription, Target, expand_formats, protocol_violation};
use crate::portal::{ExecuteOutcome, Portal, PortalProgress, not_runnable_error, unknown_portal};
use crate::prepared_statement::{CachedPlan, PreparedStatement, duplicate_statement, unknown_statement};
use crate::result_rows::Columns;
use crate::result_sink::ResultSink;
use crate::running_statement::Statement;
use crate::session::{Session, StatementPosition};
use crate::started_statement::{StartedStatement, command_tag};
use crate::statement_timer::StatementState;

impl Session {
    /// Parse: prepares a named statement, or replaces the unnamed one.
    pub async fn prepare(&mut self, name: &str, sql: &Arc<String>, type_oids: &[u32]) -> SqlResult<()> {
        if !name.is_empty() && self.prepared.contains_key(name) {
            return Err(duplicate_statement(name));
        }
        self.prepared.remove(name);
        let declared = type_oids.iter().map(|oid| declared_type(*oid)).collect::<SqlResult<Vec<_>>>()?;
        let mut statements = self.parse(sql).await?;
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(Condition::SyntaxError, message));
        }
        let prepared = match statements.pop() {
            Some(parsed) => {
                let statement = self.begin(&parsed.text);
                let steps = self.prepare_parsed(parsed, &declared, &statement);
                let prepared = statement.run_interruptible(pin!(steps)).await;
                record_failure(&statement, &prepared, sql);
                prepared?
            }
            None => PreparedStatement::empty(),
        };
        self.prepared.insert(name.to_owned(), Arc::new(prepared));
        Ok(())
    }

    /// Prepares a parsed statement: finds the types of its parameters and columns, and caches its plan or key lookup.
    pub(crate) async fn prepare_parsed(
        &mut self,
        parsed: Arc<ParsedStatement>,
        declared: &[Option<SqlType>],
        statement: &Statement,
    ) -> SqlResult<PreparedStatement> {
        self.enter_transaction(Some(&parsed), statement)?;
        let planned = match parsed.explained_execute() {
            Some(_) => self.plan(&parsed, declared, &[], statement).await,
            None => self.plan_without_rows(&parsed, declared, statement).await,
        };
        let planned = match planned {
            Ok(planned) => planned,
            Err(error) => {
                // An object that it has created before may be in its way: Execute finds out whether it is a repetition
                // under a token.
                let may_repeat = !parsed.takes_parameters() && self.was_committed().await?;
                return if may_repeat { Ok(PreparedStatement::unplanned(parsed)) } else { Err(error) };
            }
        };
        let columns = self.columns_of(&planned)?;
        let parameters = planned.parameters();
        let state = self.transaction_block.view().state;
        let programs = match self.settings().index_scan() {
            true => CachedKeyLookups::compile(&planned, self.transaction_block.session_state(), &state),
            false => CachedKeyLookups::None,
        };
        let plan = if self.settings().caches_plans() {
            // A statement with a key lookup seldom needs its plan, and a small plan is made again quickly.
            let plan = PreparedPlan::new(planned, &self.instance.planner);
            let plan = plan.filter(|plan| programs.is_empty() || !plan.is_small());
            plan.map(|plan| {
                CachedPlan::new(plan, PlanDependencies::new(self.transaction_block.session_state(), &state))
            })
            .unwrap_or_default()
        } else {
            CachedPlan::default()
        };
        Ok(PreparedStatement { parsed: Some(parsed), parameters, columns, key_lookups: programs, plan })
    }

    /// Bind: creates a portal from a prepared statement and the values of its parameters.
    pub async fn bind(&mut self, bind: &BindRequest) -> SqlResult<()> {
        let prepared = self.prepared.get(&bind.statement).ok_or_else(|| unknown_statement(&bind.statement))?;
        let prepared = Arc::clone(prepared);
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            let message = format!("cursor \"{}\" already exists", bind.portal);
            return Err(SqlError::new(Condition::DuplicateCursor, message));
        }
        self.portals.remove(&bind.portal);
        let wanted = prepared.parameters.len();
        let formats = expand_formats(&bind.parameter_formats, bind.parameters.len(), "parameter", "parameters")?;
        if bind.parameters.len() != wanted {
            return Err(protocol_violation(format!(
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {wanted}",
                bind.parameters.len(),
                bind.statement
            )));
        }
        let portal = match &prepared.parsed {
            None => Portal::empty(Arc::clone(&prepared)),
            Some(parsed) => {
                let statement = self.begin(&parsed.text);
                let steps = async {
                    self.enter_transaction(Some(parsed), &statement)?;
                    let dates = self.settings().date_context(statement.started_us);
                    let mut values = Vec::with_capacity(wanted);
                    for (index, ((bytes, format), sql_type)) in
                        bind.parameters.iter().zip(&formats).zip(&prepared.parameters).enumerate()
                    {
                        let bytes = bytes.as_deref();
                        values.push(
                            match bytes.filter(|_| *format == Format::Text).and_then(|text| object_name(text, sql_type))
                            {
                                Some(name) => self.resolve_object_parameter(name, sql_type, &statement)?,
                                None => decode::decode_parameter(index + 1, bytes, *format, sql_type, &dates)?,
                            },
                        );
                    }
                    if let Some(program) = self.key_lookup_for_types(&prepared, &values, &statement).await {
                        let bound = BoundStatement { values, plan: BoundPlan::KeyLookup(program) };
                        return Ok(Portal::bound(Arc::clone(&prepared), bound, prepared.columns.clone()));
                    }
                    let planned = match self.plan_prepared(&prepared, &values, &statement).await {
                        Ok(planned) => planned,
                        Err(error) => {
                            self.add_parameters_to_request(&values, &prepared.parameters)?;
                            if !self.was_committed().await? {
                                return Err(error);
                            }
                            let bound = BoundStatement { values, plan: BoundPlan::Failed(Box::new(error)) };
                            return Ok(Portal::bound(Arc::clone(&prepared), bound, None));
                        }
                    };
                    let columns = self.columns_of(&planned)?;
                    prepared.check_columns(columns.as_deref())?;
                    let bound = BoundStatement {
                        values,
                        plan: BoundPlan::Plan(Box::new(planned), self.transaction_block.view().state),
                    };
                    Ok(Portal::bound(Arc::clone(&prepared), bound, columns))
                };
                let portal = statement.run_interruptible(pin!(steps)).await;
                record_failure(&statement, &portal, prepared.text());
                let mut portal = portal?;
                portal.planning_time = statement.elapsed();
                let count = portal.columns.as_ref().map_or(0, |columns| columns.len());
                portal.formats = match portal.columns {
                    Some(_) => expand_formats(&bind.result_formats, count, "result", "columns")?,
                    None => Vec::new(),
                };
                portal
            }
        };
        self.portals.insert(bind.portal.clone(), portal);
        Ok(())
    }

    /// Returns the value of a parameter of type `regclass` or the like that names an object, as for a constant of the
    /// statement.
    fn resolve_object_parameter(
        &self,
        name: &str,
        sql_type: &SqlType,
        statement: &Statement,
    ) -> SqlResult<ScalarValue> {
        let constant = Expr::value(Value::SingleQuotedString(name.to_owned()));
        let values = self.instance.planner.evaluate_arguments(
            &[constant],
            std::slice::from_ref(sql_type),
            &self.statement_context(statement),
        )?;
        values.into_iter().next().ok_or_else(|| SqlError::internal("an object name that is a parameter has no value"))
    }

    /// Describe: returns the parameters and columns of a prepared statement.
    pub fn describe_statement(&self, name: &str) -> SqlResult<StatementDescription> {
        let prepared = self.prepared.get(name).ok_or_else(|| unknown_statement(name))?;
        Ok(StatementDescription { parameters: prepared.parameters.clone(), columns: prepared.columns.clone() })
    }

    /// Describe: returns the columns of a portal with their formats.
    pub fn describe_portal(&self, name: &str) -> SqlResult<(Option<Columns>, Vec<Format>)> {
        let portal = self.portals.get(name).ok_or_else(|| unknown_portal(name))?;
        Ok((portal.columns.clone(), portal.formats.clone()))
    }

    /// Execute: sends some or all rows of a portal, or runs its statement without rows.
    pub async fn execute_portal(
        &mut self,
        name: &str,
        rows_max: Option<u64>,
        client: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        let mut portal = self.portals.remove(name).ok_or_else(|| unknown_portal(name))?;
        if matches!(portal.progress, PortalProgress::Empty) {
            client.empty_query();
            self.portals.insert(name.to_owned(), portal);
            return Ok(());
        }
        let prepared = Arc::clone(&portal.prepared);
        let statement = self.begin(prepared.text());
        statement.add_time(StatementState::Plan, std::mem::take(&mut portal.planning_time));
        let has_program =
            matches!(&portal.progress, PortalProgress::Bound(bound) if matches!(bound.plan, BoundPlan::KeyLookup(_)));
        let ran = {
            let steps = pin!(self.run_portal(name, &mut portal, rows_max, &statement, client));
            match has_program {
                true => statement.run_interruptible_unlogged(steps).await,
                false => statement.run_interruptible(steps).await,
            }
        };
        let (ran, suspended) = match ran {
            Ok(ExecuteOutcome::Complete(tag)) => (Ok(tag), false),
            Ok(ExecuteOutcome::Suspended) => (Ok(String::new()), true),
            Err(error) => (Err(error), false),
        };
        let outcome = self.end(ran, false).await;
        statement.record(prepared.text(), outcome.as_ref().map(|_| ()), self.settings().log_min_duration_statement());
        let tag = outcome?;
        if self.transaction_block.is_open() {
            self.portals.insert(name.to_owned(), portal);
        }
        if suspended {
            client.portal_suspended();
        } else {
            self.complete(tag, client);
        }
        Ok(())
    }

    /// Runs a portal until `rows_max` rows are sent or it is complete.
    async fn run_portal(
        &mut self,
        name: &str,
        portal: &mut Portal,
        rows_max: Option<u64>,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<ExecuteOutcome> {
        let prepared = Arc::clone(&portal.prepared);
        let result = match std::mem::replace(&mut portal.progress, PortalProgress::NotRunnable) {
            PortalProgress::Bound(bound) => {
                self.add_parameters_to_request(&bound.values, &prepared.parameters)?;
                // Not known yet: whether other statements follow before Sync.
                let place = StatementPosition { is_last: false, is_only: true };
                match self.execute(Executable::Bound(&prepared, &bound), place, statement, client).await? {
                    StartedStatement::Rows(result) => result,
                    StartedStatement::Done(tag) => return Ok(ExecuteOutcome::Complete(tag)),
                }
            }
            PortalProgress::Open(result, kind) => {
                self.enter_transaction(prepared.parsed.as_ref(), statement)?;
                statement.set_kind(kind);
                result
            }
            PortalProgress::Finished { tag_word } => {
                self.enter_transaction(prepared.parsed.as_ref(), statement)?;
                portal.progress = PortalProgress::Finished { tag_word };
                return Ok(ExecuteOutcome::Complete(command_tag(tag_word, 0)));
            }
            PortalProgress::NotRunnable | PortalProgress::Empty => {
                self.enter_transaction(prepared.parsed.as_ref(), statement)?;
                return Err(not_runnable_error(name));
            }
        };
        self.send_portal_rows(portal, result, rows_max, statement, client).await
    }

    /// Close: removes a prepared statement or a portal; it need not exist.
    pub fn close(&mut self, target: &Target) {
        match target {
            Target::Statement(name) => drop(self.prepared.remove(name)),
            Target::Portal(name) => drop(self.portals.remove(name)),
        }
    }

    /// Sync: commits the implicit transaction of the batch.
    pub async fn sync(&mut self) -> SqlResult<()> {
        if self.transaction_block.is_explicit() { Ok(()) } else { self.commit().await }
    }
}

/// Returns the object name in a text parameter; `None` for an OID, and for types that name no objects.
fn object_name<'a>(text: &'a [u8], sql_type: &SqlType) -> Option<&'a str> {
    let is_number = text == b"-" || text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| sql_type.is_reg_type() && !is_number)
}

/// Counts and logs a failed Parse or Bind; successful ones are counted with Execute.
fn record_failure<T>(statement: &Statement, outcome: &SqlResult<T>, sql: &str) {
    if let Err(error) = outcome {
        statement.record(sql, Err(error), None);
    }
}

/// Returns the type that a client declares for a parameter; OID 0 leaves it open.
fn declared_type(oid: u32) -> SqlResult<Option<SqlType>> {
    match oid {
        0 => Ok(None),
        oid => match SqlType::from_oid(oid, -1) {
            Some(SqlType::Unknown) => Ok(None),
            Some(sql_type) => Ok(Some(sql_type)),
            None => {
                let message = format!("type with OID {oid} does not exist");
                Err(SqlError::new(Condition::UndefinedObject, message))
            }
        },
    }
}
