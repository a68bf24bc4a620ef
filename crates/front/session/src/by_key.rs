//! The primary-key fast path: statements that find their rows by an index run a compiled key lookup instead of
//! operators.

use std::sync::Arc;

use binder::{Planned, Step, is_numeric};
use futures::{StreamExt, stream};
use key_lookup::{PointProgram, PointRows, PointRun};
use session_context::ScalarValue;
use types::{Condition, SqlResult, SqlType};

use crate::bound::{Bound, BoundPlan};
use crate::kept_program::{KeptProgram, KeptPrograms};
use crate::life::State;
use crate::metrics::Kind;
use crate::prepared::Prepared;
use crate::retry::{AttemptResult, Retry};
use crate::rows::{Columns, Rows};
use crate::session::Session;
use crate::started::Started;
use crate::statement::Statement;
use crate::temporary::is_of_temporary;
use crate::throttle::grown_table;

impl Session {
    /// Returns the compiled key lookup of a statement that has one for each precision and scale of its numeric
    /// parameters, and compiles it if that was not tried yet. `None` for statements with one key lookup or none.
    pub(crate) async fn program_by_digits(
        &mut self,
        prepared: &Prepared,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> Option<Arc<KeptProgram>> {
        let (KeptPrograms::ByDigits(_), Some(parsed)) = (&prepared.programs, &prepared.parsed) else { return None };
        // A number with more digits than a numeric can have arrives as text, which no key lookup compares.
        let is_whole = |(value, sql_type): (&ScalarValue, &SqlType)| {
            is_numeric(sql_type) && matches!(value, ScalarValue::Utf8View(Some(_)))
        };
        if values.iter().zip(&prepared.parameters).any(is_whole) {
            return None;
        }
        let types = prepared.types_with(values);
        if prepared.programs.lacks(&types) {
            let planned = self.plan_without_rows(parsed, &types, statement).await;
            // Planning that ran out of memory is tried at the next Bind.
            if planned.as_ref().is_err_and(|error| error.condition == Condition::OutOfMemory) {
                return None;
            }
            let program = planned.ok().filter(Planned::holds_for_digits);
            let program = program.and_then(|planned| {
                KeptProgram::of(&planned, self.block.held(), &self.block.view().state).map(Arc::new)
            });
            prepared.programs.keep(types.clone(), program);
        }
        prepared.programs.find(|| types)
    }

    /// Returns the compiled key lookup of a bound statement; `None` if it has none, or a valid one would differ.
    pub(crate) fn program_now<'a>(&self, bound: &'a Bound) -> Option<&'a PointProgram> {
        let BoundPlan::Program(kept) = &bound.plan else { return None };
        kept.now(self.block.held(), &self.block.view().state)
    }

    /// Begins to run a plan as a key lookup; `None` if it is none, or the lookup turns out to need the plan.
    pub(crate) async fn run_planned_by_key(
        &mut self,
        planned: &Planned,
        statement: &Statement,
    ) -> AttemptResult<Option<Started>> {
        if !self.settings().index_scan() {
            return Ok(None);
        }
        match PointProgram::of(planned) {
            Some(program) => self.run_by_key(&program, None, &[], statement).await,
            None => Ok(None),
        }
    }

    /// Begins to run a compiled key lookup; `None` if the plan has to run instead.
    pub(crate) async fn run_by_key(
        &mut self,
        program: &PointProgram,
        columns: Option<&Columns>,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> AttemptResult<Option<Started>> {
        let _step = Step::LookUpKeys.span();
        statement.enter(State::Run);
        if let Some(repeated) = self.claim(&program.planned).await? {
            return Ok(Some(Started::Done(self.tell_repeated(repeated.written())?)));
        }
        if let Some(table) = grown_table(&program.planned) {
            self.await_settling(table).await?;
        }
        let names = self.context(statement);
        let (context, hold) = self.run_context_of(statement, &names);
        let session = program.needs_session().then(|| Arc::new(system_catalog::session(&names)));
        let run = PointRun { program, values, session: session.as_ref() };
        let dml = Arc::clone(self.instance.execution.dml());
        let lookup = Arc::clone(self.instance.execution.lookup());
        let (batches, columns) = match &program.planned {
            Planned::Query(plan) if plan.locks.is_empty() => {
                statement.is(Kind::Query);
                let Some(rows) = run.rows(&lookup, self.block.transaction()).await? else { return Ok(None) };
                let columns = columns.map_or_else(|| plan.columns.clone().into(), Arc::clone);
                let rows = Rows::of(rows, columns, context.text_style(), Some(hold));
                return Ok(Some(Started::rows(rows, "SELECT")));
            }
            Planned::Query(plan) => {
                statement.is(Kind::Query);
                if !is_of_temporary(&program.planned) {
                    self.block.check_writable("SELECT FOR UPDATE")?;
                }
                let locked = dml.query_locked_by_key(plan, &run, self.block.transaction(), &context).await?;
                let Some(locked) = locked else { return Ok(None) };
                let mut parts = locked.ok_or(Retry::Conflict)?;
                if let [PointRows::Stored(_)] = parts.as_slice()
                    && let Some(part) = parts.pop()
                {
                    let columns = columns.map_or_else(|| plan.columns.clone().into(), Arc::clone);
                    let rows = Rows::of(part, columns, context.text_style(), Some(hold));
                    return Ok(Some(Started::rows(rows, "SELECT")));
                }
                let batches = parts.into_iter().map(PointRows::into_batch).collect::<SqlResult<Vec<_>>>()?;
                (batches, plan.columns.clone())
            }
            Planned::Write(plan) => {
                statement.is(Kind::Write);
                if !is_of_temporary(&program.planned) {
                    self.block.check_writable(plan.tag)?;
                }
                let written = dml.write_by_key(plan, &run, self.block.transaction(), &context).await?;
                let Some(written) = written else { return Ok(None) };
                let written = written.ok_or(Retry::Conflict)?;
                self.instance.metrics.rows_in.inc_by(written.rows);
                self.tell(plan.notices.clone());
                return Ok(Some(self.modified(written, plan.tag, plan.returning.clone(), &context, hold)));
            }
            Planned::Modify(plan) => {
                statement.is(Kind::Write);
                if !is_of_temporary(&program.planned) {
                    self.block.check_writable(plan.tag)?;
                }
                let changed = dml.modify_by_key(plan, &run, self.block.transaction(), &context).await?;
                let Some(changed) = changed else { return Ok(None) };
                let changed = changed.ok_or(Retry::Conflict)?;
                self.instance.metrics.rows_in.inc_by(changed.rows);
                self.tell(plan.notices.clone());
                return Ok(Some(self.modified(changed, plan.tag, plan.returning.clone(), &context, hold)));
            }
            _ => return Ok(None),
        };
        let rows = stream::iter(batches.into_iter().map(Ok)).boxed();
        let rows = Rows::new(rows, columns, context.text_style(), Some(hold));
        Ok(Some(Started::rows(rows, "SELECT")))
    }
}
