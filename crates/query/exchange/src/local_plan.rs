//! Compiles plans that the instance runs; operators that are not compiled are partitioned.

use std::sync::Arc;

use binder::{PlanningPhase, QueryPlan, Step};
use compile::{compile_undivided, covers_entire_plan};
use datafusion::physical_plan::ExecutionPlan;
use functions::error::{from_datafusion, to_datafusion};
use operators::partition_operators;
use optimizer::OptimizedPlan;
use settings::Settings;
use tokio_util::sync::CancellationToken;
use types::SqlResult;

/// Returns whether a plan is made undivided, for [`compile_local`]. Other plans are partitioned from the start: those of
/// tests that compare with plain DataFusion, and those with plans hidden in functions, which are never compiled.
///
/// # Errors
/// None for well-formed plans.
pub fn is_planned_undivided(optimized: &OptimizedPlan, settings: &Settings) -> SqlResult<bool> {
    Ok(settings.engine() && settings.optimizer() && !optimized.has_correlated_calls().map_err(from_datafusion)?)
}

/// Compiles operators that were planned undivided and partitions the others, for execution in the instance.
///
/// # Errors
/// `54001` if the plan has too many levels.
pub fn compile_local(
    plan: &QueryPlan,
    undivided: Arc<dyn ExecutionPlan>,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let partitioned = |operators: Arc<dyn ExecutionPlan>| match covers_entire_plan(&operators) {
        true => Ok(operators),
        false => partition_operators(plan, operators, &covers_entire_plan, stop),
    };
    let below = |operators| partitioned(operators).map_err(to_datafusion);
    let begun = plan.planning_timings.start();
    let covered = Step::Compile.span().in_scope(|| compile_undivided(undivided, &below));
    let begun = plan.planning_timings.end(PlanningPhase::Compilation, begun);
    let compiled = partitioned(covered.map_err(from_datafusion)?);
    plan.planning_timings.end(PlanningPhase::PhysicalPlanning, begun);
    compiled
}
