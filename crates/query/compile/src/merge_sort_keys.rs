//! Gives sorts below merges all keys of the merge.
//!
//! DataFusion omits sort keys that are constant within each partition of the input, such as a different constant in
//! each input of a union. Compiled fragments and tasks on workers have one partition, in which the key is not constant:
//! a top-k by the other keys alone would return wrong rows.

use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{AcrossPartitions, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

/// Returns the input of a merge sorted by all of its keys; `None` if it already is, or if there is no sort.
pub fn complete_sort_keys(merge: &Arc<dyn ExecutionPlan>) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let Some(merge) = merge.downcast_ref::<SortPreservingMergeExec>() else { return Ok(None) };
    replace_sort(merge.input(), merge.expr())
}

/// Replaces the sort in `plan` by one with these keys.
fn replace_sort(plan: &Arc<dyn ExecutionPlan>, keys: &LexOrdering) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        if sort.expr() == keys {
            return Ok(None);
        }
        let whole = SortExec::new(keys.clone(), Arc::clone(sort.input())).with_fetch(sort.fetch());
        return Ok(Some(Arc::new(whole.with_preserve_partitioning(sort.preserve_partitioning()))));
    }
    let (input, keys) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let Some(keys) = keys_of_input(projection, keys)? else { return Ok(None) };
        (projection.input(), keys)
    } else if let Some(cooperative) = plan.downcast_ref::<CooperativeExec>() {
        (cooperative.input(), keys.clone())
    } else {
        return Ok(None);
    };
    let Some(sorted) = replace_sort(input, &keys)? else { return Ok(None) };
    replace_children_if_necessary(Arc::clone(plan), vec![sorted]).map(Some)
}

/// Translates sort keys of a projection's output to its input; `None` if no key remains.
fn keys_of_input(projection: &ProjectionExec, keys: &LexOrdering) -> DfResult<Option<LexOrdering>> {
    let output_of = |expression: Arc<dyn PhysicalExpr>| {
        let of_column = |part: Arc<dyn PhysicalExpr>| {
            Ok(match part.downcast_ref::<Column>().and_then(|column| projection.expr().get(column.index())) {
                // The replacement refers to columns of the input.
                Some(output) => Transformed::new(Arc::clone(&output.expr), true, TreeNodeRecursion::Jump),
                None => Transformed::no(part),
            })
        };
        expression.transform_down(of_column).data()
    };
    let mut keys_below = Vec::with_capacity(keys.len());
    for key in keys {
        keys_below.push(PhysicalSortExpr { expr: output_of(Arc::clone(&key.expr))?, options: key.options });
    }
    Ok(LexOrdering::new(keys_below))
}

/// Returns whether a sort takes the first rows of each partition by keys that do not include what distinguishes the
/// partitions. The first rows of all partitions cannot be computed from a single sort then.
pub(super) fn is_top_k_per_partition(sort: &SortExec, keys: &LexOrdering) -> bool {
    let input = sort.input();
    if sort.fetch().is_none() || !sort.preserve_partitioning() || input.output_partitioning().partition_count() == 1 {
        return false;
    }
    let constants = input.equivalence_properties().constants();
    let is_key = |constant: &Arc<dyn PhysicalExpr>| keys.iter().any(|key| key.expr.eq(constant));
    constants.iter().any(|it| it.across_partitions == AcrossPartitions::Heterogeneous && !is_key(&it.expr))
}
