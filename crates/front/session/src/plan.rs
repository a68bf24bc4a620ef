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
    pub(crate) fn plan(
        &self,
        parsed: &Arc<Parsed>,
        parameters: &[Option<SqlType>],
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<Planning<Planned>> {
        statement.enter(State::Plan);
        if let Some((_, name, arguments)) = parsed.explained_execute()
            && let Some(planning) = self.plan_prepared(name, arguments, statement)?
        {
            let (planner, parsed) = (Arc::clone(&self.instance.planner), Arc::clone(parsed));
            return planning.then(move |planned| match parsed.explained_execute() {
                Some((explain, ..)) => planner.explain_execute(explain, planned),
                None => Err(SqlError::internal("a statement is EXPLAIN EXECUTE as long as it is planned")),
            });
        }
        let mut context = self.context(statement);
        Arc::make_mut(&mut context).arguments = values.into();
        self.planning(parsed, parameters, context)
    }

    /// The plan of a statement. What is known, or takes no longer than to give it to another thread, is made at once.
    pub(crate) fn planning(
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
        let planned = self.with_facts(|session| session.plan_again(prepared, &bound.values, statement)).await?;
        prepared.check_columns(self.columns_of(&planned)?.as_deref())?;
        Ok(planned)
    }

    pub(crate) fn plan_again(
        &self,
        prepared: &Prepared,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<Planning<Planned>> {
        let parsed = prepared.parsed.as_ref();
        let parsed = parsed.ok_or_else(|| SqlError::internal("a portal without a statement"))?;
        let given = values.to_vec();
        let (held, state) = (self.block.held(), self.block.view().state);
        if let Some(plan) = prepared.plan.valid(held, &state) {
            statement.enter(State::Plan);
            let (context, is_small) = (self.context(statement), plan.is_small());
            let with_rows = move || plan.with_rows_of(&context)?.with_parameters(given).map(Planned::Query);
            return if is_small { with_rows().map(Planning::Done) } else { Ok(Planning::of(with_rows)) };
        }
        let types = prepared.types_with(values);
        if prepared.plan.is_stale(held, &state) && self.settings().keeps_plans() {
            statement.enter(State::Plan);
            let (bare, basis) = (self.context_without_rows(statement), PlanBasis::new(held, &state));
            let (mut context, planner) = (self.context(statement), Arc::clone(&self.instance.planner));
            Arc::make_mut(&mut context).arguments = values.into();
            let (parsed, cached) = (Arc::clone(parsed), prepared.plan.clone());
            return Ok(Planning::of(move || {
                let plan = |context: &Arc<StatementContext>| planner.plan(&parsed, &types, context);
                cached.renew(basis, &planner, &bare, &context, plan)?.with_parameters(given)
            }));
        }
        self.plan(parsed, &types, values, statement)?.then(|planned| planned.with_parameters(given))
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
            let parsing = self.instance.execution.executor().planning().run(move || planner.parse(&text).map(shared));
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
