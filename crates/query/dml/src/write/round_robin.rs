//! Deals the rows of a single stream round-robin to several writers, because encoding rows takes longer than computing
//! them.

use std::sync::Arc;

use compile::FragmentExec;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use exchange::is_distributed;
use functions::error::from_datafusion;
use types::SqlResult;

/// Repartitions `rows` round-robin to `threads` streams if they come from a compiled plan or from other processes, in
/// no order.
///
/// Rows of operators keep their partitions: rows that were read together stay together, which helps later readers.
pub(super) fn repartition_round_robin(
    rows: Arc<dyn ExecutionPlan>,
    threads: usize,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    if threads < 2 || !is_compiled_or_remote(&rows) || rows.output_ordering().is_some() {
        return Ok(rows);
    }
    let dealt = RepartitionExec::try_new(rows, Partitioning::RoundRobinBatch(threads)).map_err(from_datafusion)?;
    Ok(Arc::new(dealt))
}

/// Returns whether the rows come from a compiled plan of the engine or from other processes.
fn is_compiled_or_remote(rows: &Arc<dyn ExecutionPlan>) -> bool {
    match rows.downcast_ref::<ProjectionExec>() {
        Some(projection) => is_compiled_or_remote(projection.input()),
        None => rows.is::<FragmentExec>() || is_distributed(rows),
    }
}
