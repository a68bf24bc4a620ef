//! Operators that are run by the instance: programs in the place of most, and the rest partitioned.

use std::sync::Arc;

use binder::{Phase, QueryPlan, Step};
use compile::{cover_undivided, is_whole};
use datafusion::physical_plan::ExecutionPlan;
use functions::error::{from_datafusion, to_datafusion};
use tokio_util::sync::CancellationToken;
use types::SqlResult;

/// Operators that were planned undivided, as the instance runs them: covered by programs, and the rest with several partitions.
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
        false => plan.partitioned(operators, &is_whole, stop),
    };
    let begun = plan.phases.begin();
    let below = |operators| partitioned(operators).map_err(to_datafusion);
    let covered = Step::Compile.span().in_scope(|| cover_undivided(undivided, &below));
    plan.phases.end(Phase::Programs, begun);
    partitioned(covered.map_err(from_datafusion)?)
}
