//! Physical planning: chooses between workers and this process, and makes the operators.

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

/// Plans the operators of a query: on workers if there are some that can run it, otherwise in this process.
///
/// # Errors
/// Errors of planning; `58030` if a worker is lost that evaluates a subquery during planning.
pub(crate) async fn prepare(plan: &QueryPlan, context: &RunContext, purpose: Purpose) -> SqlResult<Prepared> {
    // Comes first: planning reads system tables, and these show the query's memory.
    let task = context.task(&plan.state);
    let Some(distribution) = &context.distribution else { return operators(plan, None, context, task, None).await };
    let planning = Planning::new(plan, context.resources(), distribution, purpose);
    let Undistributed { reason, planned } = match planning.stages().await? {
        Ok(ready) => return Ok(ready),
        Err(undistributed) => undistributed,
    };
    operators(plan, planned, context, task, Some(Spread::Instance(reason))).await
}

/// Makes the operators that run a query in this process. Fragments that the engine can run are compiled, if it is
/// enabled. `planned` is a single-threaded plan of the query, if there is one already.
///
/// # Errors
/// Errors of constant folding and of scans; `57014` if cancelled.
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
