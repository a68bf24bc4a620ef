//! Compiles plans that the instance runs; operators that are not compiled are partitioned.

use std::sync::Arc;

use binder::{Phase, QueryPlan, Step};
use compile::{cover_undivided, is_whole};
use datafusion::physical_plan::ExecutionPlan;
use functions::error::{from_datafusion, to_datafusion};
use operators::partition_operators;
use optimizer::Optimized;
use settings::Settings;
use tokio_util::sync::CancellationToken;
use types::SqlResult;

/// Returns whether a plan is made undivided, for [`compiled`]. Other plans are partitioned from the start: those of
/// tests that compare with plain DataFusion, and those with plans hidden in functions, which are never compiled.
///
/// # Errors
/// None for well-formed plans.
pub fn is_compiled(optimized: &Optimized, settings: &Settings) -> SqlResult<bool> {
    Ok(settings.engine() && settings.optimizer() && !optimized.hides_plans().map_err(from_datafusion)?)
}

/// Compiles operators that were planned undivided and partitions the others, for execution in the instance.
///
/// # Errors
/// `54001` if the plan has too many levels.
pub fn compiled(
    plan: &QueryPlan,
    undivided: Arc<dyn ExecutionPlan>,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let partitioned = |operators: Arc<dyn ExecutionPlan>| match is_whole(&operators) {
        true => Ok(operators),
        false => partition_operators(plan, operators, &is_whole, stop),
    };
    let below = |operators| partitioned(operators).map_err(to_datafusion);
    let begun = plan.phases.begin();
    let covered = Step::Compile.span().in_scope(|| cover_undivided(undivided, &below));
    let begun = plan.phases.end(Phase::Programs, begun);
    let compiled = partitioned(covered.map_err(from_datafusion)?);
    plan.phases.end(Phase::Operators, begun);
    compiled
}
