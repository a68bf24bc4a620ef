//! Programs in the place of operators that the instance runs, and partitions for the rest.

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

/// Whether a plan is made undivided for [`compiled`]. Others are made for several threads from the start: the oracles that tests compare with, as
/// DataFusion makes them, and what functions hide plans in, which no program runs.
///
/// # Errors
/// None that well-formed plans meet.
pub fn is_compiled(optimized: &Optimized, settings: &Settings) -> SqlResult<bool> {
    Ok(settings.engine() && settings.optimizer() && !optimized.hides_plans().map_err(from_datafusion)?)
}

/// Covers operators that were planned undivided by programs, and partitions the rest, as the instance runs them.
///
/// # Errors
/// `54001` for too many levels.
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
