//! Replaces each part of a plan that the engine can run by one operator.

use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::physical_expr::expressions::UnKnownColumn;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use operators::SharedScanExec;
use scan::ShardScanExec;

use crate::compile_memo::{CompileMemo, PartitionOperators};
use crate::fragment_exec::FragmentExec;
use crate::merge_sort_keys::complete_sort_keys;
use crate::plan;

/// Compiles `plan`: replaces the parts that the engine can run by fragments.
///
/// # Errors
/// None for well-formed plans.
pub fn compile_plan(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    compile_with(plan, &CompileMemo::default())
}

/// Compiles an undivided plan. `partition` is applied to the operators below a fragment that are not compiled; those
/// above fragments are left to the caller.
///
/// # Errors
/// None for well-formed plans.
pub fn compile_undivided(
    plan: Arc<dyn ExecutionPlan>,
    partition: PartitionOperators<'_>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    compile_with(plan, &CompileMemo::with_partitioner(partition))
}

/// Compiles a stage of a distributed plan. There, compiling pays even for a scan with filters only, because fewer rows
/// are sent.
///
/// # Errors
/// None for well-formed plans.
pub fn compile_stage(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    match plan::lower_filter(&plan) {
        Some(fragment) => Ok(Arc::new(FragmentExec::new(plan, fragment))),
        None => compile_plan(plan),
    }
}

/// Returns whether fragments do all the work of a plan, so that more partitions would gain nothing.
pub fn covers_entire_plan(covered: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(fragment) = covered.downcast_ref::<FragmentExec>() {
        return fragment.operator_inputs().all(|(_, operators)| covers_entire_plan(operators));
    }
    if let Some(shared) = covered.downcast_ref::<SharedScanExec>() {
        return covers_entire_plan(shared.rows().operators());
    }
    // The engine runs each of its inputs separately.
    if covered.is::<ScalarSubqueryExec>() {
        return covered.children().into_iter().all(covers_entire_plan);
    }
    let is_light = covered.is::<ProjectionExec>() || covered.is::<CooperativeExec>() || covered.is::<GlobalLimitExec>();
    match covered.children().as_slice() {
        [] => !covered.is::<ShardScanExec>(),
        [below] => is_light && covers_entire_plan(below),
        _ => false,
    }
}

/// Compiles a plan, or returns the memoized result.
pub(crate) fn compile_with(plan: Arc<dyn ExecutionPlan>, memo: &CompileMemo<'_>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if plan.children().is_empty() {
        return compile_uncached(plan, memo);
    }
    if let Some(known) = memo.compiled(&plan) {
        return Ok(known);
    }
    let covered = compile_uncached(Arc::clone(&plan), memo)?;
    memo.note_compiled(plan, &covered);
    Ok(covered)
}

/// Compiles a plan that has no memoized result.
fn compile_uncached(plan: Arc<dyn ExecutionPlan>, memo: &CompileMemo<'_>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let plan = match complete_sort_keys(&plan)? {
        Some(sort) => replace_children_if_necessary(plan, vec![sort])?,
        None => plan,
    };
    if !memo.has_no_program(&plan) {
        if let Some(fragment) = plan::lower(&plan, memo) {
            return Ok(Arc::new(FragmentExec::new(plan, fragment)));
        }
        memo.note_no_program(&plan);
    }
    // The operators that produce shared rows are not among an operator's children.
    if let Some(shared) = plan.downcast_ref::<SharedScanExec>() {
        shared.rows().compile(|operators| compile_with(operators, &memo.for_other_plan()))?;
        return Ok(plan);
    }
    // The terms of a recursive query share a work table through the operators that it knows, and are executed
    // repeatedly.
    if plan.is::<RecursiveQueryExec>() {
        return Ok(plan);
    }
    let before: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().map(Arc::clone).collect();
    let after = before.iter().map(|child| compile_with(Arc::clone(child), memo));
    let after = after.collect::<DfResult<Vec<_>>>()?;
    let is_changed = before.iter().zip(&after).any(|(before, after)| !Arc::ptr_eq(before, after));
    if !is_changed {
        return Ok(plan);
    }
    match restore_partitioning(&plan, &before, after)? {
        Some(after) if have_required_orders(&plan, &after)? => replace_children_if_necessary(plan, after),
        _ => Ok(plan),
    }
}

/// Returns the compiled children with the partitioning that their operator expects: a fragment has one partition.
/// `None` if the old partitioning cannot be restored.
fn restore_partitioning(
    plan: &Arc<dyn ExecutionPlan>,
    before: &[Arc<dyn ExecutionPlan>],
    after: Vec<Arc<dyn ExecutionPlan>>,
) -> DfResult<Option<Vec<Arc<dyn ExecutionPlan>>>> {
    let takes_any = before.len() < 2
        || plan.is::<UnionExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.downcast_ref::<HashJoinExec>().is_some_and(|join| *join.partition_mode() == PartitionMode::CollectLeft);
    if takes_any {
        return Ok(Some(after));
    }
    let mut divided = Vec::with_capacity(after.len());
    for (before, after) in before.iter().zip(after) {
        let (old, new) = (before.output_partitioning(), after.output_partitioning());
        divided.push(match old {
            _ if old.partition_count() == new.partition_count() => after,
            // Splitting a single partition preserves the order of its rows.
            Partitioning::Hash(keys, _) if !keys.iter().any(|key| key.is::<UnKnownColumn>()) => {
                Arc::new(RepartitionExec::try_new(after, old.clone())?)
            }
            _ => return Ok(None),
        });
    }
    Ok(Some(divided))
}

/// Returns whether the compiled children have the order that an operator requires.
fn have_required_orders(plan: &Arc<dyn ExecutionPlan>, after: &[Arc<dyn ExecutionPlan>]) -> DfResult<bool> {
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
