//! Operators of a distributed plan as EXPLAIN shows them.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExec, DistributedLeafExec, NetworkBoundaryExt, NetworkBroadcastExec, NetworkCoalesceExec,
    NetworkShuffleExec,
};

use crate::root_stage::RootStageExec;

/// Returns whether an operator is the root of a distributed plan.
pub fn is_distributed(operator: &Arc<dyn ExecutionPlan>) -> bool {
    operator.is::<DistributedExec>()
}

/// EXPLAIN's view of an operator that distribution added.
pub enum ShownOperator<'a> {
    /// Shown as another operator.
    As(&'a Arc<dyn ExecutionPlan>),
    /// Shown as an exchange: rows arrive from the tasks of a stage.
    Exchange { name: &'static str, stage: usize, tasks: usize, input: &'a Arc<dyn ExecutionPlan> },
}

/// Returns how EXPLAIN shows an operator that distribution added; `None` for any other operator.
pub fn shown_operator(operator: &Arc<dyn ExecutionPlan>) -> Option<ShownOperator<'_>> {
    if let Some(head) = operator.downcast_ref::<RootStageExec>() {
        return Some(ShownOperator::As(head.displayed()));
    }
    if operator.is::<DistributedExec>() {
        return operator.children().first().copied().map(ShownOperator::As);
    }
    if let Some(leaf) = operator.downcast_ref::<DistributedLeafExec>() {
        return Some(ShownOperator::As(leaf.original()));
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
    Some(ShownOperator::Exchange { name, stage: stage.num(), tasks: stage.task_count(), input })
}
