//! A distributed plan as EXPLAIN shows it: where rows change places, and what is only there for the way.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExec, DistributedLeafExec, NetworkBoundaryExt, NetworkBroadcastExec, NetworkCoalesceExec,
    NetworkShuffleExec,
};

use crate::head::HeadExec;

/// Whether rows of other processes come out of an operator.
pub fn is_distributed(operator: &Arc<dyn ExecutionPlan>) -> bool {
    operator.is::<DistributedExec>()
}

/// What an operator of this crate, or the library's, is in a plan.
pub enum Shown<'a> {
    /// It stands for another one.
    Other(&'a Arc<dyn ExecutionPlan>),
    /// Rows come from the tasks of a stage.
    Exchange { name: &'static str, stage: usize, tasks: usize, input: &'a Arc<dyn ExecutionPlan> },
}

/// `None` where it is anybody's.
pub fn shown(operator: &Arc<dyn ExecutionPlan>) -> Option<Shown<'_>> {
    if let Some(head) = operator.downcast_ref::<HeadExec>() {
        return Some(Shown::Other(head.shown()));
    }
    if operator.is::<DistributedExec>() {
        return operator.children().first().copied().map(Shown::Other);
    }
    if let Some(leaf) = operator.downcast_ref::<DistributedLeafExec>() {
        return Some(Shown::Other(leaf.original()));
    }
    let exchange = operator.as_network_boundary()?;
    let name = if operator.is::<NetworkShuffleExec>() {
        "Shuffle"
    } else if operator.is::<NetworkBroadcastExec>() {
        "Broadcast"
    } else if operator.is::<NetworkCoalesceExec>() {
        "Gather"
    } else {
        "Exchange"
    };
    let stage = exchange.input_stage();
    let input = operator.children().first().copied()?;
    Some(Shown::Exchange { name, stage: stage.num(), tasks: stage.task_count(), input })
}
