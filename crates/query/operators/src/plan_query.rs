//! Physical planning of queries.

use std::borrow::Cow;
use std::sync::Arc;

use binder::{PlanningPhase, QueryPlan, Step, with_single_partition};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use functions::error::from_datafusion;
use optimizer::OptimizedPlan;
use optimizer::correlated_subqueries::lift;
use plan::cancellation::make_cancellable;
use plan::plan_limits;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use types::SqlResult;
use types::stack_limit::{PlanningStackFuture, with_planning_stack};

use crate::parallelize::{CoversEntirePlan, parallelize_plan};
use crate::shared_rows::SharedRowsRegistry;

/// Threads that a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// One thread, for plans that the engine replaces and divides itself. Such plans are made faster.
    Single,
    /// As many threads as the settings say.
    Multiple,
}

/// Plans the operators of a query; they fail with `57014` soon after `stop` fires.
///
/// # Errors
/// Errors of constant folding (such as division by zero) and of planning scans; `XX000` for bugs.
pub async fn plan_query(query: &QueryPlan, stop: &CancellationToken) -> SqlResult<Arc<dyn ExecutionPlan>> {
    plan_operators(query, &query.optimized(stop).await?, Threading::Multiple, stop).await
}

/// Plans the operators of one run of an optimized plan ([`QueryPlan::optimized`]) and of its shared rows. They fail
/// with `57014` soon after `stop` fires.
///
/// # Errors
/// As [`plan_query`]; `54001` if the plan is nested too deeply.
pub async fn plan_operators(
    query: &QueryPlan,
    optimized: &OptimizedPlan,
    division: Threading,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let begun = query.planning_timings.start();
    let state = match division {
        Threading::Single => Cow::Owned(with_single_partition(&query.state)),
        Threading::Multiple => Cow::Borrowed(query.state.as_ref()),
    };
    let operators = plan_run(optimized, &state, stop).instrument(Step::PlanOperators.span()).await;
    query.planning_timings.end(PlanningPhase::PhysicalPlanning, begun);
    operators
}

/// Partitions operators of [`Threading::None`], compiled fragments among them, into as many partitions as the settings
/// say, and those of shared rows as well, unless `is_whole` holds for these. The caller measures the time.
///
/// # Errors
/// `54001` if the plan is nested too deeply.
pub fn partition_operators(
    query: &QueryPlan,
    operators: Arc<dyn ExecutionPlan>,
    covers_entire_plan: CoversEntirePlan<'_>,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let _step = Step::Partition.span().entered();
    with_planning_stack(|| parallelize_plan(operators, &query.state, covers_entire_plan, stop)).map_err(from_datafusion)
}

/// Plans the operators of an optimized plan and of its shared rows, for one run.
pub(crate) async fn plan_run(
    optimized: &OptimizedPlan,
    state: &SessionState,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    if optimized.shared().is_empty() {
        return create_operators(optimized.plan(), state, stop).await;
    }
    let (state, rows) = SharedRowsRegistry::with_state(state);
    for shared in optimized.shared() {
        rows.register(&shared.table, &shared.columns, create_operators(&shared.plan, &state, stop).await?);
    }
    create_operators(optimized.plan(), &state, stop).await
}

async fn create_operators(
    plan: &LogicalPlan,
    state: &SessionState,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let plan = lift(plan).map_err(from_datafusion)?;
    let operators = async {
        let operators = state.query_planner().create_physical_plan(&plan, state).await?;
        plan_limits::check_operators(&operators)?;
        make_cancellable(operators, stop)
    };
    PlanningStackFuture::new(operators).await.map_err(from_datafusion)
}
