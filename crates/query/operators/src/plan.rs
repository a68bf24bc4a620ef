//! Physical planning of queries.

use std::borrow::Cow;
use std::sync::Arc;

use binder::{Phase, QueryPlan, Step, undivided};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use functions::error::from_datafusion;
use optimizer::Optimized;
use optimizer::dependent::lift;
use plan::levels;
use plan::stop::stoppable;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use types::SqlResult;
use types::stack::{PlanningStack, with_planning_stack};

use crate::partitioned::{IsWhole, partitioned};
use crate::shared_rows::RowsOfRun;

/// Threads that a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// One thread, for plans that the engine replaces and divides itself. Such plans are made faster.
    None,
    /// As many threads as the settings say.
    Threads,
}

/// Plans the operators of a query; they fail with `57014` soon after `stop` fires.
///
/// # Errors
/// Errors of constant folding (such as division by zero) and of planning scans; `XX000` for bugs.
pub async fn plan_query(query: &QueryPlan, stop: &CancellationToken) -> SqlResult<Arc<dyn ExecutionPlan>> {
    plan_operators(query, &query.optimized(stop).await?, Division::Threads, stop).await
}

/// Plans the operators of one run of an optimized plan ([`QueryPlan::optimized`]) and of its shared rows. They fail
/// with `57014` soon after `stop` fires.
///
/// # Errors
/// As [`plan_query`]; `54001` if the plan is nested too deeply.
pub async fn plan_operators(
    query: &QueryPlan,
    optimized: &Optimized,
    division: Division,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let begun = query.phases.begin();
    let state = match division {
        Division::None => Cow::Owned(undivided(&query.state)),
        Division::Threads => Cow::Borrowed(query.state.as_ref()),
    };
    let operators = operators_of_run(optimized, &state, stop).instrument(Step::PlanOperators.span()).await;
    query.phases.end(Phase::Operators, begun);
    operators
}

/// Partitions operators of [`Division::None`], compiled fragments among them, into as many partitions as the settings
/// say, and those of shared rows as well, unless `is_whole` holds for these. The caller measures the time.
///
/// # Errors
/// `54001` if the plan is nested too deeply.
pub fn partition_operators(
    query: &QueryPlan,
    operators: Arc<dyn ExecutionPlan>,
    is_whole: IsWhole<'_>,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let _step = Step::Partition.span().entered();
    with_planning_stack(|| partitioned(operators, &query.state, is_whole, stop)).map_err(from_datafusion)
}

/// Plans the operators of an optimized plan and of its shared rows, for one run.
pub(crate) async fn operators_of_run(
    optimized: &Optimized,
    state: &SessionState,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    if optimized.shared().is_empty() {
        return operators(optimized.plan(), state, stop).await;
    }
    let (state, rows) = RowsOfRun::within(state);
    for shared in optimized.shared() {
        rows.add(&shared.table, &shared.columns, operators(&shared.plan, &state, stop).await?);
    }
    operators(optimized.plan(), &state, stop).await
}

async fn operators(
    plan: &LogicalPlan,
    state: &SessionState,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let plan = lift(plan).map_err(from_datafusion)?;
    let operators = async {
        let operators = state.query_planner().create_physical_plan(&plan, state).await?;
        levels::check_operators(&operators)?;
        stoppable(operators, stop)
    };
    PlanningStack::new(operators).await.map_err(from_datafusion)
}
