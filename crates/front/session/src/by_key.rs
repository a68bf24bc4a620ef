//! Statements that find their rows by an index: run by a program instead of operators, which a prepared statement keeps from one
//! execution to the next.

use std::sync::Arc;

use binder::Planned;
use catalog::CatalogState;
use datafusion::scalar::ScalarValue;
use futures::{StreamExt, stream};
use key_lookup::{PointProgram, PointRows, PointRun};
use parking_lot::Mutex;
use row_locks::Attempt;
use types::{Condition, SqlResult, SqlType};

use crate::held::Held;
use crate::life::State;
use crate::metrics::Kind;
use crate::plan_basis::PlanBasis;
use crate::portal::Bound;
use crate::prepared::Prepared;
use crate::result_sink::ResultSink;
use crate::rows::{Columns, Rows};
use crate::run::Started;
use crate::session::Session;
use crate::statement::Statement;
use crate::temporary::is_of_temporary;
use crate::throttle::grown_table;

/// A program and what its plan was made with.
pub(crate) struct KeptProgram {
    program: PointProgram,
    basis: PlanBasis,
}

impl KeptProgram {
    /// The program of a plan that was made without rows; `None` for a statement that has none, or whose program cannot be kept. A plan whose
    /// numeric parameters have no digits yet, and decide what it is, has to be made for each digits: [`KeptPrograms`].
    pub(crate) fn of(planned: &Planned, held: &Held, state: &CatalogState) -> Option<Self> {
        let is_kept = match planned {
            Planned::Query(query) => query.locks.is_empty() || query.locked_limit.counts().is_ok(),
            // What becomes of referring rows is planned for now.
            Planned::Modify(modify) => modify.references.is_empty(),
            Planned::Write(write) => write.conflict.as_ref().is_none_or(|conflict| conflict.references.is_empty()),
            _ => true,
        };
        let program = PointProgram::of(planned).filter(|_| is_kept && !planned.has_read_now())?;
        Some(Self { program, basis: PlanBasis::new(held, state) })
    }

    /// Whether it gives rows and changes nothing, not even a lock, and does not ask who runs it.
    pub(crate) fn is_select(&self) -> bool {
        matches!(&self.program.planned, Planned::Query(query) if query.locks.is_empty())
            && !self.program.needs_session()
    }

    /// The program, if its plan would be made the same now.
    pub(crate) fn now(&self, held: &Held, state: &CatalogState) -> Option<&PointProgram> {
        self.basis.holds(held, state).then_some(&self.program)
    }
}

/// The programs of a prepared statement.
pub(crate) enum KeptPrograms {
    /// It is planned for each use.
    None,
    /// One for all parameters.
    Of(Arc<KeptProgram>),
    /// One for each digits that numeric parameters have had, the last used last; `None` where the plan holds for one value only.
    ByDigits(Mutex<Vec<(ParameterTypes, Option<Arc<KeptProgram>>)>>),
}

type ParameterTypes = Vec<Option<SqlType>>;

/// Programs of one statement that are kept.
const KEPT_MAX: usize = 32;

impl KeptPrograms {
    /// The programs of a statement, from its plan for numeric parameters of unknown digits.
    pub(crate) fn of(planned: &Planned, held: &Held, state: &CatalogState) -> Self {
        match KeptProgram::of(planned, held, state) {
            Some(_) if planned.depends_on_digits() => Self::ByDigits(Mutex::default()),
            Some(program) => Self::Of(Arc::new(program)),
            None => Self::None,
        }
    }

    pub(crate) fn are_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The program for parameters of these types.
    pub(crate) fn find(&self, types: impl FnOnce() -> ParameterTypes) -> Option<Arc<KeptProgram>> {
        match self {
            Self::None => None,
            Self::Of(program) => Some(Arc::clone(program)),
            Self::ByDigits(known) => {
                let (mut known, types) = (known.lock(), types());
                let at = known.iter().rposition(|(of, _)| *of == types)?;
                known[at..].rotate_left(1);
                known.last().and_then(|(_, program)| program.clone())
            }
        }
    }

    /// Whether a program should be made for parameters of these types.
    fn lacks(&self, types: &ParameterTypes) -> bool {
        matches!(self, Self::ByDigits(known) if !known.lock().iter().any(|(of, _)| of == types))
    }

    fn keep(&self, types: ParameterTypes, program: Option<Arc<KeptProgram>>) {
        if let Self::ByDigits(known) = self {
            let mut known = known.lock();
            let surplus = (known.len() + 1).saturating_sub(KEPT_MAX);
            known.drain(..surplus);
            known.push((types, program));
        }
    }
}

impl Session {
    /// The program of a statement for the digits of the numerics among its parameters' values, made if that was not tried yet; `None` for a statement that has
    /// one program or none.
    pub(crate) async fn program_by_digits(
        &mut self,
        prepared: &Prepared,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> Option<Arc<KeptProgram>> {
        let (KeptPrograms::ByDigits(_), Some(parsed)) = (&prepared.programs, &prepared.parsed) else { return None };
        let types = prepared.types_with(values);
        if prepared.programs.lacks(&types) {
            let planned = match self.planning(parsed, &types, self.context_without_rows(statement)) {
                Ok(planning) => self.planned(planning).await,
                Err(error) => Err(error),
            };
            // For want of memory it is tried again.
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

    /// Begins to run a portal whose statement has a program.
    pub(crate) async fn start_by_key(
        &mut self,
        prepared: &Arc<Prepared>,
        kept: &KeptProgram,
        values: Vec<ScalarValue>,
        statement: &Statement,
        client: &mut dyn ResultSink,
    ) -> SqlResult<Started> {
        while let Some(program) = kept.now(self.block.held(), &self.block.view().state)
            && let Some(started) = self.run_by_key(program, prepared.columns.as_ref(), &values, statement).await?
        {
            if !matches!(started, Started::Again) {
                return Ok(started);
            }
            self.enter(prepared.parsed.as_ref(), statement)?;
        }
        let again = |session: &Self| session.plan_again(prepared, &values, statement);
        let planned = Box::pin(self.with_facts(again)).await?;
        prepared.check_columns(self.columns_of(&planned)?.as_deref())?;
        let bound = Bound { planned: Box::new(planned), values, state: self.block.view().state };
        Box::pin(self.start_bound(prepared, &bound, statement, client)).await
    }

    /// Begins to run a plan by its program; `None` where it has none, or the plan has to be run.
    pub(crate) async fn start_planned_by_key(
        &mut self,
        planned: &Planned,
        statement: &Statement,
    ) -> SqlResult<Option<Started>> {
        if !self.settings().index_scan() {
            return Ok(None);
        }
        match PointProgram::of(planned) {
            Some(program) => self.run_by_key(&program, None, &[], statement).await,
            None => Ok(None),
        }
    }

    async fn run_by_key(
        &mut self,
        program: &PointProgram,
        columns: Option<&Columns>,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<Option<Started>> {
        statement.enter(State::Run);
        if let Some(repeated) = self.claim(&program.planned).await? {
            return self.tell_repeated(repeated.written()).map(Started::Done).map(Some);
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
                return Ok(Some(Started::Rows(Box::new(rows), "SELECT")));
            }
            Planned::Query(plan) => {
                statement.is(Kind::Query);
                if !is_of_temporary(&program.planned) {
                    self.block.check_writable("SELECT FOR UPDATE")?;
                }
                let locked = dml.query_locked_by_key(plan, &run, self.block.transaction(), &context).await?;
                let Some(locked) = locked else { return Ok(None) };
                let Attempt::Done(mut parts) = locked else { return Ok(Some(Started::Again)) };
                if let [PointRows::Stored(_)] = parts.as_slice()
                    && let Some(part) = parts.pop()
                {
                    let columns = columns.map_or_else(|| plan.columns.clone().into(), Arc::clone);
                    let rows = Rows::of(part, columns, context.text_style(), Some(hold));
                    return Ok(Some(Started::Rows(Box::new(rows), "SELECT")));
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
                let Attempt::Done(written) = written else { return Ok(Some(Started::Again)) };
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
                let Attempt::Done(changed) = changed else { return Ok(Some(Started::Again)) };
                self.instance.metrics.rows_in.inc_by(changed.rows);
                self.tell(plan.notices.clone());
                return Ok(Some(self.modified(changed, plan.tag, plan.returning.clone(), &context, hold)));
            }
            _ => return Ok(None),
        };
        let rows = stream::iter(batches.into_iter().map(Ok)).boxed();
        let rows = Rows::new(rows, columns, context.text_style(), Some(hold));
        Ok(Some(Started::Rows(Box::new(rows), "SELECT")))
    }
}
