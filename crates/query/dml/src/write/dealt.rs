//! The rows of a program, which come as one stream, dealt to as many streams as there are threads: packing them takes longer than making them.

use std::sync::Arc;

use compile::FragmentExec;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use exchange::is_distributed;
use functions::error::from_datafusion;
use types::SqlResult;

/// `rows` in so many streams if they are a program's, or come from other processes, and in no order: those of operators lie together as they were read, which is of use
/// to who reads them later.
pub(super) fn dealt(rows: Arc<dyn ExecutionPlan>, threads: usize) -> SqlResult<Arc<dyn ExecutionPlan>> {
    if threads < 2 || !is_of_program(&rows) || rows.output_ordering().is_some() {
        return Ok(rows);
    }
    let dealt = RepartitionExec::try_new(rows, Partitioning::RoundRobinBatch(threads)).map_err(from_datafusion)?;
    Ok(Arc::new(dealt))
}

fn is_of_program(rows: &Arc<dyn ExecutionPlan>) -> bool {
    match rows.downcast_ref::<ProjectionExec>() {
        Some(projection) => is_of_program(projection.input()),
        None => rows.is::<FragmentExec>() || is_distributed(rows),
    }
}
