//! How a session plans: by what it has at the moment, on threads that nobody else waits for.

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

/// Texts up to so many bytes are parsed where they arrive: that takes some microseconds, about as long as to give them to another thread.
const SHORT_TEXT_BYTES: usize = 2_048;

impl Session {
    /// From text to a plan, by what the catalog and the settings say now.
    /// `values` are those of its parameters, where they are given.
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

    /// The plan of a statement. What is known, or takes no longer than to give it to another thread, is made at once.
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

    /// The plan of a statement that is to be kept: it keeps no row alive.
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

    /// The plan of a bound statement, as it can run now; `last` is why an attempt to run it came to nothing.
    pub(crate) async fn plan_bound(
        &mut self,
        prepared: &Prepared,
        bound: &Bound,
        last: Option<Retry>,
        statement: &Statement,
    ) -> SqlResult<Planned> {
        match &bound.plan {
            BoundPlan::Failed(error) => return Err(SqlError::clone(error)),
            // A plan that changes rows says where they lie, so it has to be of what the transaction sees now.
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

    /// The plan of a prepared statement for values of its parameters.
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

    /// As [`Session::plan_again`], of what is no EXPLAIN EXECUTE.
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

    /// Waits for planning to be done.
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

    /// The statements of a string, in order.
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

/// Whether the plan says of rows where they lie.
fn changes_rows(planned: &Planned) -> bool {
    match planned {
        Planned::Write(_) | Planned::Modify(_) => true,
        Planned::Query(plan) => !plan.locks.is_empty(),
        Planned::Explain(plan) => plan.analyze && changes_rows(&plan.inner),
        _ => false,
    }
}
