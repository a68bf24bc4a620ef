//! Physical planning: chooses between workers and this process, and makes the operators.

use std::sync::Arc;

use binder::{PlanningPhase, QueryPlan, Step};
use compile::compile_plan;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use exchange::{
    DistributedPlanner, DistributedRun, LocalQuery, PreparedQuery, Purpose, RunLocation, compile_local,
    is_planned_undivided,
};
use functions::error::from_datafusion;
use operators::{Threading, plan_operators};
use optimizer::OptimizedPlan;
use types::SqlResult;

use crate::run_context::RunContext;

/// Plans the operators of a query: on workers if there are some that can run it, otherwise in this process.
///
/// # Errors
/// Errors of planning; `58030` if a worker is lost that evaluates a subquery during planning.
pub(crate) async fn prepare(plan: &QueryPlan, context: &RunContext, purpose: Purpose) -> SqlResult<PreparedQuery> {
    // Comes first: planning reads system tables, and these show the query's memory.
    let task = context.task_context(&plan.state);
    let Some(distribution) = &context.distribution else { return prepare_local(plan, None, context, task, None).await };
    let planning = DistributedPlanner::new(plan, context.resources(), distribution, purpose);
    let LocalQuery { reason, plan: planned } = match planning.plan_stages().await? {
        Ok(ready) => return Ok(ready),
        Err(undistributed) => undistributed,
    };
    prepare_local(plan, planned, context, task, Some(RunLocation::Instance(reason))).await
}

/// Makes the operators that run a query in this process. Fragments that the engine can run are compiled, if it is
/// enabled. `planned` is a single-threaded plan of the query, if there is one already.
///
/// # Errors
/// Errors of constant folding and of scans; `57014` if cancelled.
pub async fn prepare_local(
    plan: &QueryPlan,
    single_threaded_plan: Option<(OptimizedPlan, Arc<dyn ExecutionPlan>)>,
    context: &RunContext,
    task: Arc<TaskContext>,
    spread: Option<RunLocation>,
) -> SqlResult<PreparedQuery> {
    let stop = &context.cancel;
    let settings = &context.settings;
    let (optimized, undivided) = match single_threaded_plan {
        Some((optimized, undivided)) => (optimized, Some(undivided)),
        None => {
            let optimized = plan.optimized(stop).await?;
            let undivided = match optimized.has_costly_operators() && is_planned_undivided(&optimized, settings)? {
                true => Some(plan_operators(plan, &optimized, Threading::Single, stop).await?),
                false => None,
            };
            (optimized, undivided)
        }
    };
    let operators = match undivided {
        Some(undivided) => compile_local(plan, undivided, stop)?,
        None => {
            let divided = plan_operators(plan, &optimized, Threading::Multiple, stop).await?;
            if settings.engine() { compile_fragments(plan, divided)? } else { divided }
        }
    };
    let place = spread.map(|spread| DistributedRun { location: spread, reports: Arc::default() });
    Ok(PreparedQuery { operators, optimized: Arc::new(optimized), task, distributed: place })
}

fn compile_fragments(plan: &QueryPlan, operators: Arc<dyn ExecutionPlan>) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let begun = plan.planning_timings.start();
    let covered = Step::Compile.span().in_scope(|| compile_plan(operators));
    plan.planning_timings.end(PlanningPhase::Compilation, begun);
    covered.map_err(from_datafusion)
}
