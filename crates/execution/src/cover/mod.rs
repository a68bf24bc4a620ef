//! Plans to engine programs: each part of a plan that the engine can run becomes one operator, a [`FragmentExec`], which runs it.
//!
//! `plan` makes pipelines of operators and `expression.rs` expressions of DataFusion's; what has no form of the engine's own is called
//! through `foreign.rs`. `run.rs` runs a program, `pipelines.rs` drives its pipelines, each by `workers.rs`, `share.rs`
//! divides their sources among these, `source.rs` brings pages of scans. The operators that a fragment stands for stay with it: EXPLAIN shows them, and they
//! run instead where the engine gives up.

mod expression;
mod foreign;
mod fragment;
mod measure;
mod pipelines;
mod plan;
mod run;
mod share;
mod source;
mod workers;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::union::UnionExec;

pub(crate) use fragment::FragmentExec;
pub(crate) use plan::OperatorId;
pub(crate) use run::FALLBACKS;

/// `plan` with fragments in the place of what the engine can run.
///
/// # Errors
/// None that well-formed plans meet.
pub(crate) fn cover(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if let Some(fragment) = plan::lower(&plan) {
        return Ok(Arc::new(FragmentExec::new(plan, fragment)));
    }
    let before: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().map(Arc::clone).collect();
    let after = before.iter().map(|child| cover(Arc::clone(child))).collect::<DfResult<Vec<_>>>()?;
    let is_changed = before.iter().zip(&after).any(|(before, after)| !Arc::ptr_eq(before, after));
    if !is_changed || !may_replace(&plan, &before, &after) || !stay_ordered(&plan, &after)? {
        return Ok(plan);
    }
    replace_children_if_necessary(plan, after)
}

/// Whether the new children's rows come in the order that an operator asks for.
fn stay_ordered(plan: &Arc<dyn ExecutionPlan>, after: &[Arc<dyn ExecutionPlan>]) -> DfResult<bool> {
    for (child, asked) in after.iter().zip(plan.required_input_ordering()) {
        let known = child.properties().equivalence_properties();
        if let Some(asked) = asked
            && !known.ordering_satisfy_requirement(asked.into_single())?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an operator works over the new children as it did over the old: a fragment gives one partition.
fn may_replace(
    plan: &Arc<dyn ExecutionPlan>,
    before: &[Arc<dyn ExecutionPlan>],
    after: &[Arc<dyn ExecutionPlan>],
) -> bool {
    if before.len() < 2 {
        return true;
    }
    let partitions = |child: &Arc<dyn ExecutionPlan>| child.properties().output_partitioning().partition_count();
    let is_kept = before.iter().zip(after).all(|(before, after)| partitions(before) == partitions(after));
    is_kept || plan.is::<UnionExec>() || plan.is::<NestedLoopJoinExec>() || plan.is::<CrossJoinExec>()
}
