//! Execution of a statement, from its text or its bound form to its first row or its command tag.
//!
//! [`Session::execute`] is the one loop for all protocols, [`Session::attempt`] its steps: the statement enters its
//! transaction; if it has a compiled key lookup, that runs (`by_key.rs`), and most statements end there; otherwise
//! historical snapshots and file lists are fetched (`resolve.rs`), it is planned (`plan.rs`), waits for a cluster
//! (`admit.rs`), claims its token (`token.rs`) and runs.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::Schema;
use binder::{ExplainFormat, OutputColumn, Planned, QueryPlan};
use dml::Modified;
use executor::RunContext;
use futures::StreamExt;
use futures::stream::BoxStream;
use storage_error::from_transaction;
use txn::Isolation;
use types::{SqlError, SqlResult};

use crate::executable::Executable;
use crate::metrics::Kind;
use crate::notice::Severity;
use crate::result_sink::ResultSink;
use crate::retry::{AttemptError, AttemptResult, Retry};
use crate::rows::{Hold, Rows};
use crate::session::{Place, Session};
use crate::started::{Started, tag};
use crate::statement::Statement;
use crate::temporary;
use crate::throttle::grown_table;

impl Session {
    /// Runs a statement until its rows are open or it is complete, retrying as often as needed.
    pub(crate) async fn execute(
        &mut self,
        what: Executable<'_>,
        place: Place,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Started> {
        let mut last = None;
        loop {
            match self.attempt(what, last, place, statement, client).await {
                Ok(started) => return Ok(started),
                Err(AttemptError::Retry(retry)) => last = Some(retry),
                Err(AttemptError::Failed(error)) => return self.repeated_or(*error).await.map(Started::Done),
            }
        }
    }

    /// Makes one attempt, each step of [`Session::execute`] once. `last` is the reason for the retry.
    async fn attempt(
        &mut self,
        what: Executable<'_>,
        last: Option<Retry>,
        place: Place,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<Started> {
        self.enter(what.parsed(), statement)?;
        // A statement that has waited for a cluster has no key lookup.
        let mut may_look_up = last != Some(Retry::Waited);
        if may_look_up
            && let Executable::Bound(prepared, bound) = what
            && let Some(program) = self.program_now(bound)
        {
            let columns = prepared.columns.as_ref();
            if let Some(started) = self.run_by_key(program, columns, &bound.values, statement).await? {
                return Ok(started);
            }
            may_look_up = false;
        }
        // Most statements end above: boxing keeps the remaining steps out of this future's memory.
        Box::pin(async {
            let planned = match what {
                Executable::Text(parsed) => {
                    parsed.check_without_parameters()?;
                    self.plan(parsed, &[], &[], statement).await?
                }
                Executable::Bound(prepared, bound) => self.plan_bound(prepared, bound, last, statement).await?,
            };
            self.start(planned, may_look_up, place, statement, client).await
        })
        .await
    }

    /// Begins to run a plan, by a key lookup if it can and `may_look_up`; a statement without rows is complete on
    /// return.
    pub(crate) async fn start(
        &mut self,
        planned: Planned,
        may_look_up: bool,
        place: Place,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<Started> {
        if may_look_up && let Some(started) = self.run_planned_by_key(&planned, statement).await? {
            return Ok(started);
        }
        statement.is(kind(&planned));
        if let Some(repeated) = self.repeats(&planned).await? {
            return Ok(self.repeated(repeated, &planned, client).await?);
        }
        self.admit(&planned, statement).await?;
        if let Some(repeated) = self.claim(&planned).await? {
            return Ok(self.repeated(repeated, &planned, client).await?);
        }
        statement.runs(planned.phases());
        if let Some(table) = grown_table(&planned) {
            self.await_settling(table).await?;
        }
        let mark = self.admitted.is_some().then(|| self.block.transaction().mark());
        let started = Box::pin(self.run_plan(planned, place, statement, client)).await;
        if let (Err(AttemptError::Retry(Retry::WorkerLost)), Some(mark)) = (&started, mark) {
            self.block.transaction().roll_back_to(&mark).map_err(from_transaction)?;
        }
        started
    }

    /// Runs a plan that has been admitted.
    async fn run_plan(
        &mut self,
        planned: Planned,
        place: Place,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> AttemptResult<Started> {
        if self.block.modes().is_some_and(|modes| modes.isolation == Isolation::Serializable) {
            for table in planned.tables_read() {
                self.block.transaction().note_read(table);
            }
        }
        let may_write = temporary::is_of_temporary(&planned);
        match planned {
            Planned::Query(plan) if !plan.locks.is_empty() => {
                if !may_write {
                    self.block.check_writable("SELECT FOR UPDATE")?;
                }
                self.lock_rows(&plan, statement).await
            }
            Planned::Query(plan) => Ok(Started::rows(self.query(&plan, statement).await?, "SELECT")),
            Planned::Write(plan) => {
                if !may_write {
                    self.block.check_writable(if plan.before.is_empty() { plan.tag } else { "CREATE TABLE AS" })?;
                }
                let (context, hold) = self.run_context(statement);
                let dml = Arc::clone(self.instance.execution.dml());
                let written = dml.write(&plan, self.block.transaction(), &context).await;
                let written = written.map_err(|error| AttemptError::from_run(error, &context, statement))?;
                let written = written.ok_or(Retry::Conflict)?;
                self.instance.metrics.rows_in.inc_by(written.rows);
                self.tell(plan.notices);
                Ok(self.modified(written, plan.tag, plan.returning, &context, hold))
            }
            Planned::Modify(plan) => {
                if !may_write {
                    self.block.check_writable(plan.tag)?;
                }
                let (context, hold) = self.run_context(statement);
                let dml = Arc::clone(self.instance.execution.dml());
                let changed = dml.modify(&plan, self.block.transaction(), &context).await;
                let changed = changed.map_err(|error| AttemptError::from_run(error, &context, statement))?;
                let changed = changed.ok_or(Retry::Conflict)?;
                self.instance.metrics.rows_in.inc_by(changed.rows);
                self.tell(plan.notices);
                Ok(self.modified(changed, plan.tag, plan.returning, &context, hold))
            }
            Planned::Define(plan) => self.define(plan, statement).await,
            Planned::CopyFrom(plan) => Ok(Started::Done(self.copy_from(plan, statement, client).await?)),
            Planned::CopyTo(plan) => self.copy_to(plan, statement, client).await,
            Planned::Explain(plan) => {
                if plan.analyze && !may_write {
                    self.check_explained(&plan.inner)?;
                }
                let (context, hold) = self.run_context(statement);
                let explainer = Arc::clone(self.instance.execution.explainer());
                let lines = explainer.explain(&plan, self.block.transaction(), &context).await;
                let lines = lines.map_err(|error| AttemptError::from_run(error, &context, statement))?;
                let lines = lines.ok_or(Retry::Conflict)?;
                self.note_written("EXPLAIN", 0, true, None);
                let columns = vec![plan.column()];
                let rows = explained(plan.format, lines, &columns)?;
                Ok(Started::rows(Rows::new(rows, columns, context.text_style(), Some(hold)), "EXPLAIN"))
            }
            Planned::Session(command) => self.command(command, place, statement, client).await,
        }
    }

    /// Refuses EXPLAIN ANALYZE of a write in a read-only transaction.
    fn check_explained(&self, planned: &Planned) -> SqlResult<()> {
        match planned {
            Planned::Query(plan) if !plan.locks.is_empty() => self.block.check_writable("SELECT FOR UPDATE"),
            Planned::Write(plan) => {
                self.block.check_writable(if plan.before.is_empty() { plan.tag } else { "CREATE TABLE AS" })
            }
            Planned::Modify(plan) => self.block.check_writable(plan.tag),
            _ => Ok(()),
        }
    }

    /// Opens a query; rows are computed as they are fetched.
    pub(crate) async fn query(&mut self, plan: &QueryPlan, statement: &Statement) -> AttemptResult<Rows> {
        self.block.transaction();
        let (context, hold) = self.run_context(statement);
        let executor = Arc::clone(self.instance.execution.executor());
        let opened = executor.query(plan, &context).await;
        let opened = opened.map_err(|error| AttemptError::from_run(error, &context, statement))?;
        Ok(Rows::new(opened.stream, plan.columns.clone(), context.text_style(), Some(hold)))
    }

    /// Runs SELECT … FOR UPDATE and the like: locks all rows before the first is sent.
    async fn lock_rows(&mut self, plan: &QueryPlan, statement: &Statement) -> AttemptResult<Started> {
        let (context, hold) = self.run_context(statement);
        let dml = Arc::clone(self.instance.execution.dml());
        let locked = dml.query_locked(plan, self.block.transaction(), &context).await;
        let locked = locked.map_err(|error| AttemptError::from_run(error, &context, statement))?;
        let batches = locked.ok_or(Retry::Conflict)?;
        let rows = futures::stream::iter(batches.into_iter().map(Ok)).boxed();
        let rows = Rows::new(rows, plan.columns.clone(), context.text_style(), Some(hold));
        Ok(Started::rows(rows, "SELECT"))
    }

    /// Records the outcome of a statement that changed rows and returns the rows of RETURNING, or the command tag.
    pub(crate) fn modified(
        &mut self,
        done: Modified,
        word: &'static str,
        returning: Option<Vec<OutputColumn>>,
        context: &RunContext,
        hold: Hold,
    ) -> Started {
        let tag = tag(word, done.rows);
        self.note_written(&tag, done.rows, returning.is_some(), None);
        let Some(columns) = returning else { return Started::Done(tag) };
        let rows = futures::stream::iter(done.returning.into_iter().map(Ok)).boxed();
        Started::rows(Rows::new(rows, columns, context.text_style(), Some(hold)), word)
    }

    /// Adds notices, to be sent before the statement's completion.
    pub(crate) fn tell(&mut self, notices: Vec<SqlError>) {
        self.notices.extend(notices.into_iter().map(|notice| (Severity::Notice, notice)));
    }
}

/// Converts EXPLAIN's output to rows: one per line of text, or one for the JSON document.
fn explained(
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

fn kind(planned: &Planned) -> Kind {
    match planned {
        Planned::Query(_) | Planned::Explain(_) => Kind::Query,
        Planned::Write(_) | Planned::Modify(_) => Kind::Write,
        Planned::CopyFrom(_) | Planned::CopyTo(_) => Kind::Copy,
        Planned::Define(_) => Kind::Define,
        Planned::Session(_) => Kind::Session,
    }
}
