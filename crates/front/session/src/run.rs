//! Step 4 of a statement: a plan runs, and its client gets what it makes.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::Schema;
use binder::{ExplainFormat, OutputColumn, Planned, QueryPlan};
use dml::Modified;
use executor::RunContext;
use futures::StreamExt;
use futures::stream::BoxStream;
use row_locks::Attempt;
use txn::Isolation;
use types::{SqlError, SqlResult};
use value_codec::encode::Format;

use crate::metrics::Kind;
use crate::notice::Severity;
use crate::portal::{Bound, Portal, Progress};
use crate::prepared::Prepared;
use crate::result_sink::ResultSink;
use crate::rows::{Hold, Rows};
use crate::session::{Place, Session};
use crate::started::{Flow, Ran, Started, tag};
use crate::statement::Statement;
use crate::temporary;
use crate::throttle::grown_table;
use crate::turn::Admission;

impl Session {
    /// Runs a plan to its end, all rows as text; `None` if it has to be planned again, see [`Started::Again`].
    pub(crate) async fn deliver(
        &mut self,
        planned: Planned,
        place: Place,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Option<String>> {
        let tag = match Box::pin(self.start(planned, place, statement, client)).await? {
            Started::Rows(mut rows, word) => {
                let formats = vec![Format::Text; rows.columns.len()];
                client.describe(&rows.columns, &formats);
                let sent = client.send(&mut rows, &formats, None).await?;
                self.instance.metrics.rows_out.inc_by(sent.rows);
                tag(word, sent.rows)
            }
            Started::Fetch { cursor, count } => {
                let (rows, formats) = self.cursor(&cursor)?;
                statement.resumes(rows);
                client.describe(&rows.columns, formats);
                let sent = client.send(rows, formats, count).await?;
                self.instance.metrics.rows_out.inc_by(sent.rows);
                tag("FETCH", sent.rows)
            }
            Started::Done(tag) => tag,
            Started::Again => return Ok(None),
        };
        Ok(Some(tag))
    }

    /// Runs a portal until `rows_max` rows are sent, or to its end.
    pub(crate) async fn advance(
        &mut self,
        portal: &mut Portal,
        rows_max: Option<u64>,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Ran> {
        let prepared = Arc::clone(&portal.prepared);
        let started = match std::mem::replace(&mut portal.progress, Progress::Spent) {
            Progress::ByKey { program, values } => {
                self.asks_with(&values, &prepared.parameters)?;
                Err(self.start_by_key(&prepared, &program, values, statement, client).await)
            }
            Progress::Bound(bound) => {
                self.asks_with(&bound.values, &prepared.parameters)?;
                Err(Box::pin(self.start_bound(&prepared, &bound, statement, client)).await)
            }
            Progress::Unplanned { values, error } => {
                self.asks_with(&values, &prepared.parameters)?;
                Err(Err(*error))
            }
            resumed => Ok(resumed),
        };
        let started = match started {
            Err(Err(error)) => Err(Started::Done(self.repeated_or(error).await?)),
            Err(Ok(started)) => Err(started),
            Ok(resumed) => Ok(resumed),
        };
        let progress = match started {
            Ok(resumed) => resumed,
            Err(Started::Rows(rows, word)) => Progress::Rows { rows, word },
            Err(Started::Fetch { cursor, count }) => Progress::Fetching { cursor, left: count },
            Err(Started::Done(tag)) => return Ok(Ran { tag, flow: Flow::Complete }),
            Err(Started::Again) => return Err(SqlError::internal("a portal was not run again")),
        };
        match progress {
            Progress::Rows { mut rows, word } => {
                statement.is(Kind::Query);
                statement.resumes(&rows);
                let sent = client.send(&mut rows, &portal.formats, rows_max).await?;
                self.instance.metrics.rows_out.inc_by(sent.rows);
                let flow = if sent.finished { Flow::Complete } else { Flow::Suspended };
                portal.progress = match flow {
                    Flow::Complete => Progress::Finished { word },
                    Flow::Suspended => Progress::Rows { rows, word },
                };
                Ok(Ran { tag: tag(word, sent.rows), flow })
            }
            Progress::Fetching { cursor, left } => {
                statement.is(Kind::Query);
                let limit = match (left, rows_max) {
                    (Some(left), Some(rows_max)) => Some(left.min(rows_max)),
                    (left, rows_max) => left.or(rows_max),
                };
                let rows = self.cursor_rows(&cursor)?;
                statement.resumes(rows);
                let sent = client.send(rows, &portal.formats, limit).await?;
                self.instance.metrics.rows_out.inc_by(sent.rows);
                let left = left.map(|left| left - sent.rows);
                let finished = sent.finished || left == Some(0);
                portal.progress =
                    if finished { Progress::Finished { word: "FETCH" } } else { Progress::Fetching { cursor, left } };
                let flow = if finished { Flow::Complete } else { Flow::Suspended };
                Ok(Ran { tag: tag("FETCH", sent.rows), flow })
            }
            Progress::Finished { word } => {
                portal.progress = Progress::Finished { word };
                Ok(Ran { tag: tag(word, 0), flow: Flow::Complete })
            }
            Progress::Empty
            | Progress::Bound(_)
            | Progress::ByKey { .. }
            | Progress::Unplanned { .. }
            | Progress::Spent => Ok(Ran { tag: String::new(), flow: Flow::Complete }),
        }
    }

    /// Begins to run a portal's plan, made again as often as others come first.
    pub(crate) async fn start_bound(
        &mut self,
        prepared: &Prepared,
        bound: &Bound,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Started> {
        // Whether others follow before Sync is not known yet.
        let place = Place { last: false, alone: true };
        let mut planned = self.with_facts(|session| session.plan_bound(prepared, bound, statement)).await?;
        loop {
            match Box::pin(self.start(planned, place, statement, client)).await? {
                Started::Again => {
                    self.enter(prepared.parsed.as_ref(), statement)?;
                    let again = |session: &Self| session.plan_again(prepared, &bound.values, statement);
                    planned = self.with_facts(again).await?;
                }
                started => return Ok(started),
            }
        }
    }

    /// Begins to run a plan; what has no rows is done on return.
    pub(crate) async fn start(
        &mut self,
        planned: Planned,
        place: Place,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Started> {
        if let Some(started) = self.start_planned_by_key(&planned, statement).await? {
            return Ok(started);
        }
        statement.is(kind(&planned));
        if let Some(repeated) = self.repeats(&planned).await? {
            return self.repeated(repeated, &planned, client).await;
        }
        if self.admit(&planned, statement).await? == Admission::Waited {
            return Ok(Started::Again);
        }
        if let Some(repeated) = self.claim(&planned).await? {
            return self.repeated(repeated, &planned, client).await;
        }
        statement.runs(planned.phases());
        if let Some(table) = grown_table(&planned) {
            self.await_settling(table).await?;
        }
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
            Planned::Query(plan) => {
                let rows = self.query(&plan, statement).await?;
                Ok(Started::Rows(Box::new(rows), "SELECT"))
            }
            Planned::Write(plan) => {
                if !may_write {
                    self.block.check_writable(if plan.before.is_empty() { plan.tag } else { "CREATE TABLE AS" })?;
                }
                let (context, hold) = self.run_context(statement);
                let dml = Arc::clone(self.instance.execution.dml());
                let written = dml.write(&plan, self.block.transaction(), &context).await?;
                let Attempt::Done(written) = written else { return Ok(Started::Again) };
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
                let changed = dml.modify(&plan, self.block.transaction(), &context).await?;
                let Attempt::Done(changed) = changed else { return Ok(Started::Again) };
                self.instance.metrics.rows_in.inc_by(changed.rows);
                self.tell(plan.notices);
                Ok(self.modified(changed, plan.tag, plan.returning, &context, hold))
            }
            Planned::Define(plan) => self.define(plan, statement).await,
            Planned::CopyFrom(plan) => self.copy_from(plan, statement, client).await.map(Started::Done),
            Planned::CopyTo(plan) => self.copy_to(plan, statement, client).await.map(Started::Done),
            Planned::Explain(plan) => {
                if plan.analyze && !may_write {
                    self.check_explained(&plan.inner)?;
                }
                let (context, hold) = self.run_context(statement);
                let explainer = Arc::clone(self.instance.execution.explainer());
                let attempt = explainer.explain(&plan, self.block.transaction(), &context).await?;
                let Attempt::Done(lines) = attempt else { return Ok(Started::Again) };
                self.note_written("EXPLAIN", 0, true, None);
                let columns = vec![plan.column()];
                let rows = explained(plan.format, lines, &columns)?;
                Ok(Started::Rows(Box::new(Rows::new(rows, columns, context.text_style(), Some(hold))), "EXPLAIN"))
            }
            Planned::Session(command) => self.command(command, place, statement, client).await,
        }
    }

    /// Refuses to run what a read-only transaction must not do.
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

    /// Opens a query: no row is made before it is asked for.
    pub(crate) async fn query(&mut self, plan: &QueryPlan, statement: &Statement) -> SqlResult<Rows> {
        self.block.transaction();
        let (context, hold) = self.run_context(statement);
        let executor = Arc::clone(self.instance.execution.executor());
        let opened = executor.query(plan, &context).await?;
        Ok(Rows::new(opened.stream, plan.columns.clone(), context.text_style(), Some(hold)))
    }

    /// SELECT … FOR UPDATE and its like: the rows are locked before the first is given.
    async fn lock_rows(&mut self, plan: &QueryPlan, statement: &Statement) -> SqlResult<Started> {
        let (context, hold) = self.run_context(statement);
        let dml = Arc::clone(self.instance.execution.dml());
        let locked = dml.query_locked(plan, self.block.transaction(), &context).await?;
        let Attempt::Done(batches) = locked else { return Ok(Started::Again) };
        let rows = futures::stream::iter(batches.into_iter().map(Ok)).boxed();
        let rows = Rows::new(rows, plan.columns.clone(), context.text_style(), Some(hold));
        Ok(Started::Rows(Box::new(rows), "SELECT"))
    }

    /// The end of a statement that changed rows: what RETURNING gives, or the tag.
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
        Started::Rows(Box::new(Rows::new(rows, columns, context.text_style(), Some(hold))), word)
    }

    pub(crate) fn tell(&mut self, notices: Vec<SqlError>) {
        self.notices.extend(notices.into_iter().map(|notice| (Severity::Notice, notice)));
    }
}

/// EXPLAIN's lines as rows: one for each line of text, one for a whole JSON document.
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
        .map_err(|error| SqlError::internal(format!("EXPLAIN's answer: {error}")))?;
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
