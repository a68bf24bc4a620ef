//! Rewrites plans into shapes that the library cuts correctly.

use std::sync::Arc;

use compile::complete_sort_keys;
use datafusion::common::Result as DfResult;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputOrderMode, Partitioning, replace_children_if_necessary,
};

/// Rewrites a plan so that the library cuts it correctly.
pub(super) fn prepare_for_cut(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|operator| {
        let changed = if collects_left(&operator) {
            separate_limit(&operator)
        } else if let Some(sorted) = complete_sort_keys(&operator)? {
            Some(vec![sorted])
        } else {
            remove_round_robin(&operator)
        };
        match changed {
            Some(children) => replace_children_if_necessary(operator, children).map(Transformed::yes),
            None => Ok(Transformed::no(operator)),
        }
    })
    .data()
}

/// Separates the limit of a build side from the operator that merges its partitions. The library puts a broadcast below
/// that operator, and each worker would then choose different rows.
fn separate_limit(join: &Arc<dyn ExecutionPlan>) -> Option<Vec<Arc<dyn ExecutionPlan>>> {
    let mut children: Vec<_> = join.children().into_iter().map(Arc::clone).collect();
    let fetch = children.first()?.downcast_ref::<CoalescePartitionsExec>().and_then(ExecutionPlan::fetch)?;
    children[0] = Arc::new(GlobalLimitExec::new(Arc::clone(&children[0]), 0, Some(fetch)));
    Some(children)
}

/// Removes a round-robin exchange whose partitions are merged at once. The library would take an exchange at the top of
/// a stage for its own and remove it.
fn remove_round_robin(gather: &Arc<dyn ExecutionPlan>) -> Option<Vec<Arc<dyn ExecutionPlan>>> {
    let gather = gather.downcast_ref::<CoalescePartitionsExec>()?;
    let deal = gather.input().downcast_ref::<RepartitionExec>()?;
    matches!(deal.partitioning(), Partitioning::RoundRobinBatch(_)).then(|| vec![Arc::clone(deal.input())])
}

/// Returns whether the input of each window is ordered by the window's partition columns. DataFusion omits a column
/// from the order if it is known to be constant; another process, which only receives the rows, does not know that.
pub(super) fn are_windows_ordered(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut all = true;
    let walked = plan.apply(|operator| {
        let windows = if let Some(bounded) = operator.downcast_ref::<BoundedWindowAggExec>() {
            let is_sorted = bounded.input_order_mode == InputOrderMode::Sorted;
            is_sorted.then(|| (bounded.window_expr(), bounded.input()))
        } else {
            operator.downcast_ref::<WindowAggExec>().map(|windows| (windows.window_expr(), windows.input()))
        };
        if let Some(([first, ..], input)) = windows {
            let ordering = input.output_ordering();
            let is_in_order = |column| ordering.is_some_and(|keys| keys.iter().any(|key| key.expr.eq(column)));
            all &= first.partition_by().iter().all(is_in_order);
        }
        Ok(if all { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.expect("the visitor of windows returns no error");
    all
}

/// Returns whether an operator reads all of its first input before anything else.
fn collects_left(operator: &Arc<dyn ExecutionPlan>) -> bool {
    operator.is::<NestedLoopJoinExec>()
        || operator.is::<CrossJoinExec>()
        || operator
            .downcast_ref::<HashJoinExec>()
            .is_some_and(|join| *join.partition_mode() == PartitionMode::CollectLeft)
}
