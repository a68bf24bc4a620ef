//! What of a plan's shape the library would get wrong.

use std::sync::Arc;

use compile::whole_sort;
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

/// The same plan in a shape that is cut right.
pub(super) fn to_be_cut(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|operator| {
        let changed = if collects_left(&operator) {
            limit_apart(&operator)
        } else if let Some(sorted) = whole_sort(&operator)? {
            Some(vec![sorted])
        } else {
            dealt_in_vain(&operator)
        };
        match changed {
            Some(children) => replace_children_if_necessary(operator, children).map(Transformed::yes),
            None => Ok(Transformed::no(operator)),
        }
    })
    .data()
}

/// A limit of a build side stays apart from the exchange that brings its rows together: the library puts a broadcast below that exchange, and each
/// worker would then take its own choice of the rows.
fn limit_apart(join: &Arc<dyn ExecutionPlan>) -> Option<Vec<Arc<dyn ExecutionPlan>>> {
    let mut children: Vec<_> = join.children().into_iter().map(Arc::clone).collect();
    let fetch = children.first()?.downcast_ref::<CoalescePartitionsExec>().and_then(ExecutionPlan::fetch)?;
    children[0] = Arc::new(GlobalLimitExec::new(Arc::clone(&children[0]), 0, Some(fetch)));
    Some(children)
}

/// Rows that are dealt out and brought together at once: the library takes any exchange at the top of a stage for its own, and this one away.
fn dealt_in_vain(gather: &Arc<dyn ExecutionPlan>) -> Option<Vec<Arc<dyn ExecutionPlan>>> {
    let gather = gather.downcast_ref::<CoalescePartitionsExec>()?;
    let deal = gather.input().downcast_ref::<RepartitionExec>()?;
    matches!(deal.partitioning(), Partitioning::RoundRobinBatch(_)).then(|| vec![Arc::clone(deal.input())])
}

/// Whether each window of a plan finds the columns that part its rows in the order of its input. Where one of them is known to be the same in all rows the
/// order leaves it out, and in another process, where the rows come from elsewhere, nobody knows that.
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
    walked.expect("nothing fails on the way");
    all
}

/// Whether an operator reads all of its first input before anything else.
fn collects_left(operator: &Arc<dyn ExecutionPlan>) -> bool {
    operator.is::<NestedLoopJoinExec>()
        || operator.is::<CrossJoinExec>()
        || operator
            .downcast_ref::<HashJoinExec>()
            .is_some_and(|join| *join.partition_mode() == PartitionMode::CollectLeft)
}
