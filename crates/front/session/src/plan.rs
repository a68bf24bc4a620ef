//! Planning of a session's statements, in the session's present state; large texts and plans run on planning threads.

use std::pin::pin;
use std::sync::Arc;

use binder::Planned;
use session_context::{ScalarValue, StatementContext};
use syntax::Parsed;
use types::{SqlError, SqlResult, SqlType};

use crate::bound::{Bound, BoundPlan};
use crate::life::State;
use crate::plan_basis::PlanBasis;
use crate::planning::Planning;
use crate::prepared::Prepared;
use crate::retry::Retry;
use crate::session::Session;
use crate::statement::Statement;

/// Length of texts in bytes up to which they are parsed in place: that takes some microseconds, about as long as
/// handing them to another thread.
const SHORT_TEXT_BYTES: usize = 2_048;

impl Session {
    /// Plans a statement with the present catalog and settings. `values` are those of its parameters, if they are
    /// known.
    pub(crate) async fn plan(
        &mut self,
        parsed: &Arc<Parsed>,
        parameters: &[Option<SqlType>],
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<Planned> {
        statement.enter(State::Plan);
        if let Some((explain, name, arguments)) = parsed.explained_execute()
            && let Some(planned) = Box::pin(self.plan_execute(name, arguments, statement)).await?
        {
            return self.instance.planner.explain_execute(explain, planned);
        }
        self.resolve(parsed, parameters, values, true, statement).await?;
        let mut context = self.context(statement);
        Arc::make_mut(&mut context).arguments = values.into();
        let planning = self.planning(parsed, parameters, context)?;
        self.planned(planning).await
    }

    /// Returns the planning of a statement: done at once if its plan is cached or it takes no longer than handing it to
    /// another thread.
    fn planning(
        &self,
        parsed: &Arc<Parsed>,
        parameters: &[Option<SqlType>],
        context: Arc<StatementContext>,
    ) -> SqlResult<Planning<Planned>> {
        let planner = Arc::clone(&self.instance.planner);
        if parsed.is_light() {
            return planner.plan(parsed, parameters, &context).map(Planning::Done);
        }
        if let Some(known) = planner.known(parsed, parameters, &context) {
            return Ok(Planning::Done(Planned::Query(known)));
        }
        let (parsed, parameters) = (Arc::clone(parsed), parameters.to_vec());
        Ok(Planning::of(move || planner.plan(&parsed, &parameters, &context)))
    }

    /// Plans a statement whose plan is cached, without rows, so that the plan keeps none alive.
    pub(crate) async fn plan_without_rows(
        &mut self,
        parsed: &Arc<Parsed>,
        parameters: &[Option<SqlType>],
        statement: &Statement,
    ) -> SqlResult<Planned> {
        self.resolve(parsed, parameters, &[], false, statement).await?;
        let planning = self.planning(parsed, parameters, self.context_without_rows(statement))?;
        self.planned(planning).await
    }

    /// Returns a plan of a bound statement that can run now; `last` is the reason for the retry.
    pub(crate) async fn plan_bound(
        &mut self,
        prepared: &Prepared,
        bound: &Bound,
        last: Option<Retry>,
        statement: &Statement,
    ) -> SqlResult<Planned> {
        match &bound.plan {
            BoundPlan::Failed(error) => return Err(SqlError::clone(error)),
            // A plan that changes rows refers to their present storage, so it is valid for the transaction's present
            // snapshot only.
            BoundPlan::Plan(planned, state)
                if last.is_none() && (!changes_rows(planned) || Arc::ptr_eq(&self.block.view().state, state)) =>
            {
                return Ok(Planned::clone(planned));
            }
            BoundPlan::Plan(..) | BoundPlan::Program(_) => {}
        }
        let planned = self.plan_again(prepared, &bound.values, statement).await?;
        prepared.check_columns(self.columns_of(&planned)?.as_deref())?;
        Ok(planned)
    }

    /// Plans a prepared statement for values of its parameters.
    pub(crate) async fn plan_again(
        &mut self,
        prepared: &Prepared,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<Planned> {
        let parsed = prepared.parsed.as_ref();
        let parsed = parsed.ok_or_else(|| SqlError::internal("a portal without a statement"))?;
        if parsed.explained_execute().is_some() {
            let types = prepared.types_with(values);
            return Box::pin(self.plan(parsed, &types, values, statement)).await?.with_parameters(values.to_vec());
        }
        self.plan_for_values(prepared, values, statement).await
    }

    /// Does the same as [`Session::plan_again`] for statements other than EXPLAIN EXECUTE.
    pub(crate) async fn plan_for_values(
        &mut self,
        prepared: &Prepared,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<Planned> {
        let parsed = prepared.parsed.as_ref();
        let parsed = parsed.ok_or_else(|| SqlError::internal("a portal without a statement"))?;
        let given = values.to_vec();
        let (held, state) = (self.block.held(), self.block.view().state);
        statement.enter(State::Plan);
        if let Some(plan) = prepared.plan.valid(held, &state) {
            let (context, is_small) = (self.context(statement), plan.is_small());
            let with_rows = move || plan.with_rows_of(&context)?.with_parameters(given).map(Planned::Query);
            return if is_small { with_rows() } else { self.planned(Planning::of(with_rows)).await };
        }
        let types = prepared.types_with(values);
        self.resolve(parsed, &types, values, true, statement).await?;
        let mut context = self.context(statement);
        Arc::make_mut(&mut context).arguments = values.into();
        let (held, state) = (self.block.held(), self.block.view().state);
        let planning = if prepared.plan.is_stale(held, &state) && self.settings().keeps_plans() {
            let (bare, basis) = (self.context_without_rows(statement), PlanBasis::new(held, &state));
            let planner = Arc::clone(&self.instance.planner);
            let (parsed, cached) = (Arc::clone(parsed), prepared.plan.clone());
            Planning::of(move || {
                let plan = |context: &Arc<StatementContext>| planner.plan(&parsed, &types, context);
                cached.renew(basis, &planner, &bare, &context, plan)
            })
        } else {
            self.planning(parsed, &types, context)?
        };
        let planning = planning.then(|planned| planned.with_parameters(given))?;
        self.planned(planning).await
    }

    /// Runs the planning, on a planning thread unless it is done already.
    pub(crate) fn planned<T: Send + 'static>(
        &self,
        planning: Planning<T>,
    ) -> impl Future<Output = SqlResult<T>> + Send + use<T> {
        let executor = Arc::clone(self.instance.execution.executor());
        async move {
            match planning {
                Planning::Done(outcome) => Ok(outcome),
                Planning::Work(work) => executor.planning().run(work).await,
            }
        }
    }

    /// Parses a string into its statements, in order.
    pub async fn parse(&mut self, sql: &Arc<String>) -> SqlResult<Vec<Arc<Parsed>>> {
        let begun = self.instance.clock.monotonic();
        let parsed = if sql.len() <= SHORT_TEXT_BYTES {
            let parsed = self.instance.planner.parse(sql).map(shared);
            parsed.inspect_err(|error| self.begin(sql).note(sql, Err(error), None))
        } else {
            let statement = self.begin(sql);
            let (planner, text) = (Arc::clone(&self.instance.planner), Arc::clone(sql));
            let parsing = self.planned(Planning::of(move || planner.parse(&text).map(shared)));
            let parsed = statement.watch(pin!(parsing)).await;
            parsed.inspect_err(|error| statement.note(sql, Err(error), None))
        };
        self.parsed_in = self.instance.clock.monotonic().saturating_sub(begun);
        parsed
    }
}

fn shared(statements: Vec<Parsed>) -> Vec<Arc<Parsed>> {
    statements.into_iter().map(Arc::new).collect()
}

/// Whether the plan refers to the storage of rows, which it changes or locks.
fn changes_rows(planned: &Planned) -> bool {
    match planned {
        Planned::Write(_) | Planned::Modify(_) => true,
        Planned::Query(plan) => !plan.locks.is_empty(),
        Planned::Explain(plan) => plan.analyze && changes_rows(&plan.inner),
        _ => false,
    }
}
