//! From a plan to the operators that run it here.

use std::sync::Arc;

use binder::{Division, Phase, QueryPlan, Step};
use compile::{cover, is_whole};
use datafusion::physical_plan::ExecutionPlan;
use exchange::{Place, Prepared, Spread};
use functions::error::from_datafusion;
use types::SqlResult;

use crate::context::RunContext;

/// The operators that run a query in this process; what the engine can run of them is its own, if it is on.
///
/// # Errors
/// What constant folding and scans find; `57014` when cancelled.
pub async fn operators(plan: &QueryPlan, context: &RunContext, spread: Option<Spread>) -> SqlResult<Prepared> {
    let stop = &context.cancel;
    // Before anything is planned: system tables are read then, and the query's memory is shown there.
    let task = context.task(&plan.state);
    let prepared = |operators, optimized| Prepared {
        operators,
        optimized: Arc::new(optimized),
        task,
        place: spread.map(|spread| Place { spread, reports: Arc::default() }),
    };
    let optimized = plan.optimized(stop).await?;
    if !context.settings.engine() {
        let operators = plan.operators(&optimized, Division::Threads, stop).await?;
        return Ok(prepared(operators, optimized));
    }
    if optimized.has_work() && !optimized.hides_plans().map_err(from_datafusion)? {
        let covered = programs(plan, plan.operators(&optimized, Division::None, stop).await?)?;
        if is_whole(&covered) {
            return Ok(prepared(covered, optimized));
        }
    }
    let covered = programs(plan, plan.operators(&optimized, Division::Threads, stop).await?)?;
    Ok(prepared(covered, optimized))
}

fn programs(plan: &QueryPlan, operators: Arc<dyn ExecutionPlan>) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let begun = plan.phases.begin();
    let covered = Step::Compile.span().in_scope(|| cover(operators));
    plan.phases.end(Phase::Programs, begun);
    covered.map_err(from_datafusion)
}
