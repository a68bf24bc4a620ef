//! From a plan to the operators that run it here.

use std::sync::Arc;

use binder::{Division, Phase, QueryPlan, Step};
use compile::cover;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use exchange::{Place, Prepared, Spread, compiled};
use functions::error::from_datafusion;
use optimizer::Optimized;
use types::SqlResult;

use crate::context::RunContext;

/// The operators that run a query in this process; what the engine can run of them is its own, if it is on. `planned` is what was planned of it
/// before, of [`Division::None`].
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
            // The oracles that tests compare with are planned as DataFusion does.
            let has_programs = settings.engine()
                && settings.optimizer()
                && optimized.has_work()
                && !optimized.hides_plans().map_err(from_datafusion)?;
            let undivided =
                if has_programs { Some(plan.operators(&optimized, Division::None, stop).await?) } else { None };
            (optimized, undivided)
        }
    };
    let operators = match undivided {
        Some(undivided) => compiled(plan, undivided, stop)?,
        None => {
            let divided = plan.operators(&optimized, Division::Threads, stop).await?;
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
