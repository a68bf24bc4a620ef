//! Execution of a statement, from its text or its bound form to its first row or its command tag.
//!
//! [`Session::execute`] is the one loop for all protocols, [`Session::attempt`] its steps: the statement enters its
//! transaction; if it has a compiled key lookup, that runs (`run_key_lookup.rs`), and most statements end there;
//! otherwise historical snapshots and file lists are fetched (`fetch_planning_inputs.rs`), it is planned
//! (`plan_statement.rs`), waits for a cluster (`admit_statement.rs`), claims its token (`idempotency_token.rs`) and
//! runs.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::Schema;
use binder::{ExplainFormat, OutputColumn, QueryPlan, StatementPlan};
use dml::ModifyOutcome;
use executor::RunContext;
use futures::StreamExt;
use futures::stream::BoxStream;
use storage_error::from_transaction;
use txn::Isolation;
use types::{SqlError, SqlResult};

use crate::executable_statement::Executable;
use crate::flush_backpressure::insert_target;
use crate::message_severity::Severity;
use crate::metrics::StatementKind;
use crate::result_rows::{QueryGuard, Rows};
use crate::result_sink::ResultSink;
use crate::retry_reason::{AttemptError, AttemptResult, RetryReason};
use crate::running_statement::Statement;
use crate::session::{Session, StatementPosition};
use crate::started_statement::{StartedStatement, command_tag};
use crate::temporary_objects;

impl Session {
    /// Runs a statement until its rows are open or it is complete, retrying as often as needed.
    pub(crate) async fn execute(
        &mut self,
        executable: Executable<'_>,
        position: StatementPosition,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<StartedStatement> {
        let mut retry_reason = None;
        loop {
            match self.attempt(executable, retry_reason, position, statement, client).await {
                Ok(started) => return Ok(started),
                Err(AttemptError::Retry(retry)) => retry_reason = Some(retry),
                Err(AttemptError::Failed(error)) => {
                    return self.recorded_tag_or_error(*error).await.map(StartedStatement::Done);
                }
            }
        }
    }

    /// Makes one attempt, each step of [`Session::execute`] once. `last` is the reason for the retry.
    async fn attempt(
        &mut self,
        executable: Executable<'_>,
        retry_reason: Option<RetryReason>,
        position: StatementPosition,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<StartedStatement> {
        self.enter_transaction(executable.parsed(), statement)?;
        // A statement that has waited for a cluster has no key lookup.
        let mut may_look_up = retry_reason != Some(RetryReason::WaitedForCluster);
        if may_look_up
            && let Executable::Bound(prepared, bound) = executable
            && let Some(program) = self.valid_key_lookup(bound)
        {
            let columns = prepared.columns.as_ref();
            if let Some(started) = self.run_key_lookup(program, columns, &bound.values, statement).await? {
                return Ok(started);
            }
            may_look_up = false;
        }
        // Most statements end above: boxing keeps the remaining steps out of this future's memory.
        Box::pin(async {
            let planned = match executable {
                Executable::Text(parsed) => {
                    parsed.check_without_parameters()?;
                    self.plan(parsed, &[], &[], statement).await?
                }
                Executable::Bound(prepared, bound) => self.plan_bound(prepared, bound, retry_reason, statement).await?,
            };
            self.start_plan(planned, may_look_up, position, statement, client).await
        })
        .await
    }

    /// Begins to run a plan, by a key lookup if it can and `may_look_up`; a statement without rows is complete on
    /// return.
    pub(crate) async fn start_plan(
        &mut self,
        planned: StatementPlan,
        may_look_up: bool,
        place: StatementPosition,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<StartedStatement> {
        if may_look_up && let Some(started) = self.run_plan_as_key_lookup(&planned, statement).await? {
            return Ok(started);
        }
        statement.set_kind(statement_kind(&planned));
        if let Some(repeated) = self.find_recorded_outcome(&planned).await? {
            return Ok(self.complete_repeated(repeated, &planned, client).await?);
        }
        self.admit(&planned, statement).await?;
        if let Some(repeated) = self.claim_token(&planned).await? {
            return Ok(self.complete_repeated(repeated, &planned, client).await?);
        }
        statement.enter_run(planned.planning_timings());
        if let Some(table) = insert_target(&planned) {
            self.wait_for_flush(table).await?;
        }
        let mark = self.admission.is_some().then(|| self.transaction_block.transaction().rollback_point());
        let started = Box::pin(self.run_plan(planned, place, statement, client)).await;
        if let (Err(AttemptError::Retry(RetryReason::WorkerLost)), Some(mark)) = (&started, mark) {
            self.transaction_block.transaction().rollback_to_point(&mark).map_err(from_transaction)?;
        }
        started
    }

    /// Runs a plan that has been admitted.
    async fn run_plan(
        &mut self,
        planned: StatementPlan,
        place: StatementPosition,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<StartedStatement> {
        if self.transaction_block.modes().is_some_and(|modes| modes.isolation == Isolation::Serializable) {
            for table in planned.tables_read() {
                self.transaction_block.transaction().record_table_read(table);
            }
        }
        let may_write = temporary_objects::affects_only_temporary(&planned);
        match planned {
            StatementPlan::Query(plan) if !plan.locks.is_empty() => {
                if !may_write {
                    self.transaction_block.check_writable("SELECT FOR UPDATE")?;
                }
                self.lock_rows(&plan, statement).await
            }
            StatementPlan::Query(plan) => {
                Ok(StartedStatement::rows(self.open_query(&plan, statement).await?, "SELECT"))
            }
            StatementPlan::Write(plan) => {
                if !may_write {
                    self.transaction_block.check_writable(if plan.changes_before.is_empty() {
                        plan.command_tag
                    } else {
                        "CREATE TABLE AS"
                    })?;
                }
                let (context, hold) = self.run_context(statement);
                let dml = Arc::clone(self.instance.execution.dml());
                let written = dml.write(&plan, self.transaction_block.transaction(), &context).await;
                let written = written.map_err(|error| AttemptError::from_run(error, &context, statement))?;
                let written = written.ok_or(RetryReason::Conflict)?;
                self.instance.metrics.rows_in.inc_by(written.rows);
                self.add_notices(plan.notices);
                Ok(self.complete_write(written, plan.command_tag, plan.returning, &context, hold))
            }
            StatementPlan::Modify(plan) => {
                if !may_write {
                    self.transaction_block.check_writable(plan.command_tag)?;
                }
                let (context, hold) = self.run_context(statement);
                let dml = Arc::clone(self.instance.execution.dml());
                let changed = dml.modify(&plan, self.transaction_block.transaction(), &context).await;
                let changed = changed.map_err(|error| AttemptError::from_run(error, &context, statement))?;
                let changed = changed.ok_or(RetryReason::Conflict)?;
                self.instance.metrics.rows_in.inc_by(changed.rows);
                self.add_notices(plan.notices);
                Ok(self.complete_write(changed, plan.command_tag, plan.returning, &context, hold))
            }
            StatementPlan::Define(plan) => self.define(plan, statement).await,
            StatementPlan::CopyFrom(plan) => Ok(StartedStatement::Done(self.copy_from(plan, statement, client).await?)),
            StatementPlan::CopyTo(plan) => self.copy_to(plan, statement, client).await,
            StatementPlan::Explain(plan) => {
                if plan.analyze && !may_write {
                    self.check_explain_writable(&plan.inner)?;
                }
                let (context, hold) = self.run_context(statement);
                let explainer = Arc::clone(self.instance.execution.explainer());
                let lines = explainer.explain(&plan, self.transaction_block.transaction(), &context).await;
                let lines = lines.map_err(|error| AttemptError::from_run(error, &context, statement))?;
                let lines = lines.ok_or(RetryReason::Conflict)?;
                self.record_outcome("EXPLAIN", 0, true, None);
                let columns = vec![plan.column()];
                let rows = explain_output(plan.format, lines, &columns)?;
                Ok(StartedStatement::rows(Rows::new(rows, columns, context.text_style(), Some(hold)), "EXPLAIN"))
            }
            StatementPlan::Session(command) => self.command(command, place, statement, client).await,
        }
    }

    /// Refuses EXPLAIN ANALYZE of a write in a read-only transaction.
    fn check_explain_writable(&self, planned: &StatementPlan) -> SqlResult<()> {
        match planned {
            StatementPlan::Query(plan) if !plan.locks.is_empty() => {
                self.transaction_block.check_writable("SELECT FOR UPDATE")
            }
            StatementPlan::Write(plan) => self.transaction_block.check_writable(if plan.changes_before.is_empty() {
                plan.command_tag
            } else {
                "CREATE TABLE AS"
            }),
            StatementPlan::Modify(plan) => self.transaction_block.check_writable(plan.command_tag),
            _ => Ok(()),
        }
    }

    /// Opens a query; rows are computed as they are fetched.
    pub(crate) async fn open_query(&mut self, plan: &QueryPlan, statement: &Statement) -> AttemptResult<Rows> {
        self.transaction_block.transaction();
        let (context, hold) = self.run_context(statement);
        let executor = Arc::clone(self.instance.execution.executor());
        let opened = executor.start_query(plan, &context).await;
        let opened = opened.map_err(|error| AttemptError::from_run(error, &context, statement))?;
        Ok(Rows::new(opened.stream, plan.columns.clone(), context.text_style(), Some(hold)))
    }

    /// Runs SELECT … FOR UPDATE and the like: locks all rows before the first is sent.
    async fn lock_rows(&mut self, plan: &QueryPlan, statement: &Statement) -> AttemptResult<StartedStatement> {
        let (context, hold) = self.run_context(statement);
        let dml = Arc::clone(self.instance.execution.dml());
        let locked = dml.query_locked(plan, self.transaction_block.transaction(), &context).await;
        let locked = locked.map_err(|error| AttemptError::from_run(error, &context, statement))?;
        let batches = locked.ok_or(RetryReason::Conflict)?;
        let rows = futures::stream::iter(batches.into_iter().map(Ok)).boxed();
        let rows = Rows::new(rows, plan.columns.clone(), context.text_style(), Some(hold));
        Ok(StartedStatement::rows(rows, "SELECT"))
    }

    /// Records the outcome of a statement that changed rows and returns the rows of RETURNING, or the command tag.
    pub(crate) fn complete_write(
        &mut self,
        outcome: ModifyOutcome,
        word: &'static str,
        returning: Option<Vec<OutputColumn>>,
        context: &RunContext,
        hold: QueryGuard,
    ) -> StartedStatement {
        let tag = command_tag(word, outcome.rows);
        self.record_outcome(&tag, outcome.rows, returning.is_some(), None);
        let Some(columns) = returning else { return StartedStatement::Done(tag) };
        let rows = futures::stream::iter(outcome.returning.into_iter().map(Ok)).boxed();
        StartedStatement::rows(Rows::new(rows, columns, context.text_style(), Some(hold)), word)
    }

    /// Adds notices, to be sent before the statement's completion.
    pub(crate) fn add_notices(&mut self, notices: Vec<SqlError>) {
        self.notices.extend(notices.into_iter().map(|notice| (Severity::Notice, notice)));
    }
}

/// Converts EXPLAIN's output to rows: one per line of text, or one for the JSON document.
fn explain_output(
    format: ExplainFormat,
    lines: Vec<String>,
    columns: &[OutputColumn],
) -> SqlResult<BoxStream<'static, SqlResult<RecordBatch>>> {
    let lines = match format {
        ExplainFormat::Text => lines,
        ExplainFormat::Json => vec![lines.join("\n")],
    };
    let fields: Vec<_> = columns.iter().map(|column| column.sql_type.arrow_field(&column.name, true)).collect();
    let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(lines));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![values])
        .map_err(|error| SqlError::internal(format!("building EXPLAIN's result failed: {error}")))?;
    Ok(futures::stream::once(async move { Ok(batch) }).boxed())
}

fn statement_kind(planned: &StatementPlan) -> StatementKind {
    match planned {
        StatementPlan::Query(_) | StatementPlan::Explain(_) => StatementKind::Query,
        StatementPlan::Write(_) | StatementPlan::Modify(_) => StatementKind::Write,
        StatementPlan::CopyFrom(_) | StatementPlan::CopyTo(_) => StatementKind::Copy,
        StatementPlan::Define(_) => StatementKind::Define,
        StatementPlan::Session(_) => StatementKind::Session,
    }
}
