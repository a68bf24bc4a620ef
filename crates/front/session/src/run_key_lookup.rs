//! The primary-key fast path: statements that find their rows by an index run a compiled key lookup instead of
//! operators.

use std::sync::Arc;

use binder::{StatementPlan, Step, is_numeric};
use futures::{StreamExt, stream};
use key_lookup::{CompiledKeyLookup, KeyLookupRows, KeyLookupRun};
use session_context::ScalarValue;
use types::{Condition, SqlResult, SqlType};

use crate::bound_statement::{BoundPlan, BoundStatement};
use crate::cached_key_lookups::{CachedKeyLookup, CachedKeyLookups};
use crate::flush_backpressure::insert_target;
use crate::metrics::StatementKind;
use crate::prepared_statement::PreparedStatement;
use crate::result_rows::{Columns, Rows};
use crate::retry_reason::{AttemptResult, RetryReason};
use crate::running_statement::Statement;
use crate::session::Session;
use crate::started_statement::StartedStatement;
use crate::statement_timer::StatementState;
use crate::temporary_objects::affects_only_temporary;

impl Session {
    /// Returns the compiled key lookup of a statement that has one for each precision and scale of its numeric
    /// parameters, and compiles it if that was not tried yet. `None` for statements with one key lookup or none.
    pub(crate) async fn key_lookup_for_types(
        &mut self,
        prepared: &PreparedStatement,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> Option<Arc<CachedKeyLookup>> {
        let (CachedKeyLookups::ByParameterTypes(_), Some(parsed)) = (&prepared.key_lookups, &prepared.parsed) else {
            return None;
        };
        // A number with more digits than a numeric can have arrives as text, which no key lookup compares.
        let exceeds_numeric = |(value, sql_type): (&ScalarValue, &SqlType)| {
            is_numeric(sql_type) && matches!(value, ScalarValue::Utf8View(Some(_)))
        };
        if values.iter().zip(&prepared.parameters).any(exceeds_numeric) {
            return None;
        }
        let types = prepared.parameter_types_for(values);
        if prepared.key_lookups.needs_compiling(&types) {
            let planned = self.plan_without_rows(parsed, &types, statement).await;
            // Planning that ran out of memory is tried at the next Bind.
            if planned.as_ref().is_err_and(|error| error.condition == Condition::OutOfMemory) {
                return None;
            }
            let program = planned.ok().filter(StatementPlan::is_valid_for_digits);
            let program = program.and_then(|planned| {
                CachedKeyLookup::try_compile(
                    &planned,
                    self.transaction_block.session_state(),
                    &self.transaction_block.view().state,
                )
                .map(Arc::new)
            });
            prepared.key_lookups.insert(types.clone(), program);
        }
        prepared.key_lookups.find(|| types)
    }

    /// Returns the compiled key lookup of a bound statement; `None` if it has none, or a valid one would differ.
    pub(crate) fn valid_key_lookup<'a>(&self, bound: &'a BoundStatement) -> Option<&'a CompiledKeyLookup> {
        let BoundPlan::KeyLookup(kept) = &bound.plan else { return None };
        kept.if_valid(self.transaction_block.session_state(), &self.transaction_block.view().state)
    }

    /// Begins to run a plan as a key lookup; `None` if it is none, or the lookup turns out to need the plan.
    pub(crate) async fn run_plan_as_key_lookup(
        &mut self,
        planned: &StatementPlan,
        statement: &Statement,
    ) -> AttemptResult<Option<StartedStatement>> {
        if !self.settings().index_scan() {
            return Ok(None);
        }
        match CompiledKeyLookup::compile(planned) {
            Some(program) => self.run_key_lookup(&program, None, &[], statement).await,
            None => Ok(None),
        }
    }

    /// Begins to run a compiled key lookup; `None` if the plan has to run instead.
    pub(crate) async fn run_key_lookup(
        &mut self,
        program: &CompiledKeyLookup,
        columns: Option<&Columns>,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> AttemptResult<Option<StartedStatement>> {
        let _step = Step::LookUpKeys.span();
        statement.enter_state(StatementState::Run);
        if let Some(repeated) = self.claim_token(&program.planned).await? {
            return Ok(Some(StartedStatement::Done(self.complete_from_record(repeated.into_outcome())?)));
        }
        if let Some(table) = insert_target(&program.planned) {
            self.wait_for_flush(table).await?;
        }
        let names = self.statement_context(statement);
        let (context, hold) = self.run_context_with(statement, &names);
        let session = program.needs_session().then(|| Arc::new(system_catalog::session(&names)));
        let run = KeyLookupRun { lookup: program, parameters: values, session: session.as_ref() };
        let dml = Arc::clone(self.instance.execution.dml());
        let lookup = Arc::clone(self.instance.execution.lookup());
        let (batches, columns) = match &program.planned {
            StatementPlan::Query(plan) if plan.locks.is_empty() => {
                statement.set_kind(StatementKind::Query);
                let Some(rows) = run.read_rows(&lookup, self.transaction_block.transaction()).await? else {
                    return Ok(None);
                };
                let columns = columns.map_or_else(|| plan.columns.clone().into(), Arc::clone);
                let rows = Rows::from_key_lookup_rows(rows, columns, context.text_style(), Some(hold));
                return Ok(Some(StartedStatement::rows(rows, "SELECT")));
            }
            StatementPlan::Query(plan) => {
                statement.set_kind(StatementKind::Query);
                if !affects_only_temporary(&program.planned) {
                    self.transaction_block.check_writable("SELECT FOR UPDATE")?;
                }
                let locked =
                    dml.query_locked_by_key(plan, &run, self.transaction_block.transaction(), &context).await?;
                let Some(locked) = locked else { return Ok(None) };
                let mut lookups = locked.ok_or(RetryReason::Conflict)?;
                if let [KeyLookupRows::Stored(_)] = lookups.as_slice()
                    && let Some(rows) = lookups.pop()
                {
                    let columns = columns.map_or_else(|| plan.columns.clone().into(), Arc::clone);
                    let rows = Rows::from_key_lookup_rows(rows, columns, context.text_style(), Some(hold));
                    return Ok(Some(StartedStatement::rows(rows, "SELECT")));
                }
                let batches = lookups.into_iter().map(KeyLookupRows::into_batch).collect::<SqlResult<Vec<_>>>()?;
                (batches, plan.columns.clone())
            }
            StatementPlan::Write(plan) => {
                statement.set_kind(StatementKind::Write);
                if !affects_only_temporary(&program.planned) {
                    self.transaction_block.check_writable(plan.command_tag)?;
                }
                let written = dml.write_by_key(plan, &run, self.transaction_block.transaction(), &context).await?;
                let Some(written) = written else { return Ok(None) };
                let written = written.ok_or(RetryReason::Conflict)?;
                self.instance.metrics.rows_in.inc_by(written.rows);
                self.add_notices(plan.notices.clone());
                return Ok(Some(self.complete_write(
                    written,
                    plan.command_tag,
                    plan.returning.clone(),
                    &context,
                    hold,
                )));
            }
            StatementPlan::Modify(plan) => {
                statement.set_kind(StatementKind::Write);
                if !affects_only_temporary(&program.planned) {
                    self.transaction_block.check_writable(plan.command_tag)?;
                }
                let changed = dml.modify_by_key(plan, &run, self.transaction_block.transaction(), &context).await?;
                let Some(changed) = changed else { return Ok(None) };
                let changed = changed.ok_or(RetryReason::Conflict)?;
                self.instance.metrics.rows_in.inc_by(changed.rows);
                self.add_notices(plan.notices.clone());
                return Ok(Some(self.complete_write(
                    changed,
                    plan.command_tag,
                    plan.returning.clone(),
                    &context,
                    hold,
                )));
            }
            _ => return Ok(None),
        };
        let rows = stream::iter(batches.into_iter().map(Ok)).boxed();
        let rows = Rows::new(rows, columns, context.text_style(), Some(hold));
        Ok(Some(StartedStatement::rows(rows, "SELECT")))
    }
}
