//! From a plan to the operators that run it here.

use std::sync::Arc;

use binder::{Phase, QueryPlan, Step};
use compile::cover;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use exchange::{Place, Planning, Prepared, Purpose, Spread, Undistributed, compiled, is_compiled};
use functions::error::from_datafusion;
use operators::{Division, plan_operators};
use optimizer::Optimized;
use types::SqlResult;

use crate::context::RunContext;

/// Plans the operators of a query: on workers where there are some that can run it, else in this process.
///
/// # Errors
/// Those of planning; 58030 where a worker is lost that evaluates a subquery for it.
pub(crate) async fn prepare(plan: &QueryPlan, context: &RunContext, purpose: Purpose) -> SqlResult<Prepared> {
    // Before anything is planned: system tables are read then, and the query's memory is shown there.
    let task = context.task(&plan.state);
    let Some(distribution) = &context.distribution else { return operators(plan, None, context, task, None).await };
    let planning = Planning::new(plan, context.resources(), distribution, purpose);
    let Undistributed { reason, planned } = match planning.stages().await? {
        Ok(ready) => return Ok(ready),
        Err(undistributed) => undistributed,
    };
    operators(plan, planned, context, task, Some(Spread::Instance(reason))).await
}

/// The operators that run a query in this process; what the engine can run of them is its own, if it is on. `planned` is an undivided plan of it
/// that there is already.
///
/// # Errors
/// What constant folding and scans find; `57014` when cancelled.
pub async fn operators(
    plan: &QueryPlan,
    planned: Option<(Optimized, Arc<dyn ExecutionPlan>)>,
    context: &RunContext,
    task: Arc<TaskContext>,
    spread: Option<Spread>,
) -> SqlResult<Prepared> {
    let stop = &context.cancel;
    let settings = &context.settings;
    let (optimized, undivided) = match planned {
        Some((optimized, undivided)) => (optimized, Some(undivided)),
        None => {
            let optimized = plan.optimized(stop).await?;
            let undivided = match optimized.has_work() && is_compiled(&optimized, settings)? {
                true => Some(plan_operators(plan, &optimized, Division::None, stop).await?),
                false => None,
            };
            (optimized, undivided)
        }
    };
    let operators = match undivided {
        Some(undivided) => compiled(plan, undivided, stop)?,
        None => {
            let divided = plan_operators(plan, &optimized, Division::Threads, stop).await?;
            if settings.engine() { programs(plan, divided)? } else { divided }
        }
    };
    let place = spread.map(|spread| Place { spread, reports: Arc::default() });
    Ok(Prepared { operators, optimized: Arc::new(optimized), task, place })
}

fn programs(plan: &QueryPlan, operators: Arc<dyn ExecutionPlan>) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let begun = plan.phases.begin();
    let covered = Step::Compile.span().in_scope(|| cover(operators));
    plan.phases.end(Phase::Programs, begun);
    covered.map_err(from_datafusion)
}
