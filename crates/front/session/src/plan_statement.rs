//! Planning of a session's statements, in the session's present state; large texts and plans run on planning threads.

use std::pin::pin;
use std::sync::Arc;

use binder::StatementPlan;
use session_context::{ScalarValue, StatementContext};
use syntax::ParsedStatement;
use types::{SqlError, SqlResult, SqlType};

use crate::bound_statement::{BoundPlan, BoundStatement};
use crate::cached_plan_validity::PlanDependencies;
use crate::planning_work::PlanningWork;
use crate::prepared_statement::PreparedStatement;
use crate::retry_reason::RetryReason;
use crate::running_statement::Statement;
use crate::session::Session;
use crate::statement_timer::StatementState;

/// Length of texts in bytes up to which they are parsed in place: that takes some microseconds, about as long as
/// handing them to another thread.
const SHORT_TEXT_BYTES: usize = 2_048;

impl Session {
    /// Plans a statement with the present catalog and settings. `values` are those of its parameters, if they are
    /// known.
    pub(crate) async fn plan(
        &mut self,
        parsed: &Arc<ParsedStatement>,
        parameters: &[Option<SqlType>],
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<StatementPlan> {
        statement.enter_state(StatementState::Plan);
        if let Some((explain, name, arguments)) = parsed.explained_execute()
            && let Some(planned) = Box::pin(self.plan_execute(name, arguments, statement)).await?
        {
            return self.instance.planner.explain_execute(explain, planned);
        }
        self.resolve(parsed, parameters, values, true, statement).await?;
        let mut context = self.statement_context(statement);
        Arc::make_mut(&mut context).arguments = values.into();
        let planning = self.prepare_planning(parsed, parameters, context)?;
        self.run_planning(planning).await
    }

    /// Returns the planning of a statement: done at once if its plan is cached or it takes no longer than handing it to
    /// another thread.
    fn prepare_planning(
        &self,
        parsed: &Arc<ParsedStatement>,
        parameters: &[Option<SqlType>],
        context: Arc<StatementContext>,
    ) -> SqlResult<PlanningWork<StatementPlan>> {
        let planner = Arc::clone(&self.instance.planner);
        if parsed.has_no_expressions() {
            return planner.plan(parsed, parameters, &context).map(PlanningWork::Done);
        }
        if let Some(cached) = planner.cached_plan(parsed, parameters, &context) {
            return Ok(PlanningWork::Done(StatementPlan::Query(cached)));
        }
        let (parsed, parameters) = (Arc::clone(parsed), parameters.to_vec());
        Ok(PlanningWork::from_work(move || planner.plan(&parsed, &parameters, &context)))
    }

    /// Plans a statement whose plan is cached, without rows, so that the plan keeps none alive.
    pub(crate) async fn plan_without_rows(
        &mut self,
        parsed: &Arc<ParsedStatement>,
        parameters: &[Option<SqlType>],
        statement: &Statement,
    ) -> SqlResult<StatementPlan> {
        self.resolve(parsed, parameters, &[], false, statement).await?;
        let planning = self.prepare_planning(parsed, parameters, self.statement_context_without_rows(statement))?;
        self.run_planning(planning).await
    }

    /// Returns a plan of a bound statement that can run now; `last` is the reason for the retry.
    pub(crate) async fn plan_bound(
        &mut self,
        prepared: &PreparedStatement,
        bound: &BoundStatement,
        retry_reason: Option<RetryReason>,
        statement: &Statement,
    ) -> SqlResult<StatementPlan> {
        match &bound.plan {
            BoundPlan::Failed(error) => return Err(SqlError::clone(error)),
            // A plan that changes rows refers to their present storage, so it is valid for the transaction's present
            // snapshot only.
            BoundPlan::Plan(planned, state)
                if retry_reason.is_none()
                    && (!changes_rows(planned) || Arc::ptr_eq(&self.transaction_block.view().state, state)) =>
            {
                return Ok(StatementPlan::clone(planned));
            }
            BoundPlan::Plan(..) | BoundPlan::KeyLookup(_) => {}
        }
        let planned = self.plan_prepared(prepared, &bound.values, statement).await?;
        prepared.check_columns(self.columns_of(&planned)?.as_deref())?;
        Ok(planned)
    }

    /// Plans a prepared statement for values of its parameters.
    pub(crate) async fn plan_prepared(
        &mut self,
        prepared: &PreparedStatement,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<StatementPlan> {
        let parsed = prepared.parsed.as_ref();
        let parsed =
            parsed.ok_or_else(|| SqlError::internal("cannot plan a portal whose prepared statement is empty"))?;
        if parsed.explained_execute().is_some() {
            let types = prepared.parameter_types_for(values);
            return Box::pin(self.plan(parsed, &types, values, statement)).await?.with_parameters(values.to_vec());
        }
        self.plan_for_values(prepared, values, statement).await
    }

    /// Does the same as [`Session::plan_prepared`] for statements other than EXPLAIN EXECUTE.
    pub(crate) async fn plan_for_values(
        &mut self,
        prepared: &PreparedStatement,
        values: &[ScalarValue],
        statement: &Statement,
    ) -> SqlResult<StatementPlan> {
        let parsed = prepared.parsed.as_ref();
        let parsed =
            parsed.ok_or_else(|| SqlError::internal("cannot plan a portal whose prepared statement is empty"))?;
        let arguments = values.to_vec();
        let (held, state) = (self.transaction_block.session_state(), self.transaction_block.view().state);
        statement.enter_state(StatementState::Plan);
        if let Some(plan) = prepared.plan.get_if_valid(held, &state) {
            let (context, is_small) = (self.statement_context(statement), plan.is_small());
            let with_rows = move || plan.with_rows_of(&context)?.with_parameters(arguments).map(StatementPlan::Query);
            return if is_small { with_rows() } else { self.run_planning(PlanningWork::from_work(with_rows)).await };
        }
        let types = prepared.parameter_types_for(values);
        self.resolve(parsed, &types, values, true, statement).await?;
        let mut context = self.statement_context(statement);
        Arc::make_mut(&mut context).arguments = values.into();
        let (held, state) = (self.transaction_block.session_state(), self.transaction_block.view().state);
        let planning = if prepared.plan.is_stale(held, &state) && self.settings().caches_plans() {
            let (bare, basis) = (self.statement_context_without_rows(statement), PlanDependencies::new(held, &state));
            let planner = Arc::clone(&self.instance.planner);
            let (parsed, cached) = (Arc::clone(parsed), prepared.plan.clone());
            PlanningWork::from_work(move || {
                let plan = |context: &Arc<StatementContext>| planner.plan(&parsed, &types, context);
                cached.replan(basis, &planner, &bare, &context, plan)
            })
        } else {
            self.prepare_planning(parsed, &types, context)?
        };
        let planning = planning.then(|planned| planned.with_parameters(arguments))?;
        self.run_planning(planning).await
    }

    /// Runs the planning, on a planning thread unless it is done already.
    pub(crate) fn run_planning<T: Send + 'static>(
        &self,
        planning: PlanningWork<T>,
    ) -> impl Future<Output = SqlResult<T>> + Send + use<T> {
        let executor = Arc::clone(self.instance.execution.executor());
        async move {
            match planning {
                PlanningWork::Done(outcome) => Ok(outcome),
                PlanningWork::Deferred(work) => executor.planning_threads().run(work).await,
            }
        }
    }

    /// Parses a string into its statements, in order.
    pub async fn parse(&mut self, sql: &Arc<String>) -> SqlResult<Vec<Arc<ParsedStatement>>> {
        let begun = self.instance.clock.monotonic();
        let parsed = if sql.len() <= SHORT_TEXT_BYTES {
            let parsed = self.instance.planner.parse(sql).map(into_arcs);
            parsed.inspect_err(|error| self.begin(sql).record(sql, Err(error), None))
        } else {
            let statement = self.begin(sql);
            let (planner, text) = (Arc::clone(&self.instance.planner), Arc::clone(sql));
            let parsing = self.run_planning(PlanningWork::from_work(move || planner.parse(&text).map(into_arcs)));
            let parsed = statement.run_interruptible(pin!(parsing)).await;
            parsed.inspect_err(|error| statement.record(sql, Err(error), None))
        };
        self.parse_time = self.instance.clock.monotonic().saturating_sub(begun);
        parsed
    }
}

fn into_arcs(statements: Vec<ParsedStatement>) -> Vec<Arc<ParsedStatement>> {
    statements.into_iter().map(Arc::new).collect()
}

/// Whether the plan refers to the storage of rows, which it changes or locks.
fn changes_rows(planned: &StatementPlan) -> bool {
    match planned {
        StatementPlan::Write(_) | StatementPlan::Modify(_) => true,
        StatementPlan::Query(plan) => !plan.locks.is_empty(),
        StatementPlan::Explain(plan) => plan.analyze && changes_rows(&plan.inner),
        _ => false,
    }
}
