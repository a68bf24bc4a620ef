//! Cost-based join ordering.
//!
//! In reading order:
//!
//! - `graph.rs` turns a tree of joins into a join graph, whose leaves `leaf_set.rs` represents as bit sets,
//! - `implied_filters.rs` adds to leaves the filters that follow from join equalities (transitivity),
//! - `join_cardinality.rs` estimates the size of every subset of leaves, `join_narrowed_leaves.rs` that of dimensions
//!   restricted by others,
//! - `join_tree_search.rs` searches for the cheapest tree,
//! - `build_plan.rs` makes a plan of the tree; the smaller input is on the left, which is the build side of hash joins,
//! - `eager_aggregation.rs` and, for outer joins, `eager_aggregation_outer.rs` aggregate one input before the joins
//!   (eager aggregation).

mod build_plan;
mod eager_aggregation;
mod eager_aggregation_outer;
mod graph;
mod implied_filters;
mod join_cardinality;
mod join_narrowed_leaves;
mod join_tree_search;
mod leaf_set;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{HashSet, JoinType, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use self::graph::JoinGraph;
use self::join_cardinality::SizeEstimates;
use crate::datafusion_rules::RuleKind;
use crate::estimate_relation;

/// Optimizer rule that orders joins by cost. It runs after filters were pushed down.
#[derive(Debug, Default)]
pub(crate) struct JoinOrder;

impl OptimizerRule for JoinOrder {
    fn name(&self) -> &str {
        RuleKind::JoinOrder.name()
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        reorder(plan)
    }
}

/// Orders every tree of joins in `plan` and its subqueries.
fn reorder(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let inside = plan.map_subqueries(reorder)?;
    inside.transform_data(|plan| {
        if let LogicalPlan::Aggregate(aggregate) = &plan
            && let Some(early) = eager_aggregation::push_down_aggregate(aggregate)
                .transpose()
                .or_else(|| eager_aggregation_outer::push_down_aggregate(aggregate).transpose())
        {
            let early = early?;
            return Ok(Transformed::yes(reorder(early)?.data));
        }
        match JoinGraph::try_from_plan(&plan) {
            Some(graph) => reorder_joins(plan, graph),
            None => plan.map_children(reorder)?.transform_data(smaller_first),
        }
    })
}

/// Swaps the inputs of a FULL JOIN if the right one is smaller; a FULL JOIN is not reordered otherwise.
fn smaller_first(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let join = match plan {
        LogicalPlan::Join(join) if join.join_type == JoinType::Full => join,
        plan => return Ok(Transformed::no(plan)),
    };
    let bytes = |input: &LogicalPlan| {
        let relation = estimate_relation(input);
        relation.rows * relation.row_bytes()
    };
    let columns = join.schema.columns();
    // Duplicate names could not be projected back into their order.
    let are_distinct = columns.iter().collect::<HashSet<_>>().len() == columns.len();
    if !are_distinct || bytes(&join.left) <= bytes(&join.right) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let on = join.on.into_iter().map(|(left, right)| (right, left)).collect();
    let swapped = Join::try_new(
        join.right,
        join.left,
        on,
        join.filter,
        JoinType::Full,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let columns = columns.into_iter().map(Expr::Column).collect();
    let projection = Projection::try_new(columns, Arc::new(LogicalPlan::Join(swapped)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

/// Orders the joins of `graph`, the join graph of `plan`.
fn reorder_joins(plan: LogicalPlan, mut graph: JoinGraph) -> Result<Transformed<LogicalPlan>> {
    let mut is_changed = false;
    for leaf in &mut graph.leaves {
        let ordered = reorder(Arc::unwrap_or_clone(Arc::clone(&leaf.plan)))?;
        is_changed |= ordered.transformed;
        leaf.plan = Arc::new(ordered.data);
    }
    is_changed |= implied_filters::add_implied_conditions(&mut graph);
    let sizes = SizeEstimates::new(&graph);
    let tree = join_tree_search::find_cheapest(&graph, &sizes);
    if !is_changed && graph.original_tree.as_ref() == Some(&tree) {
        return Ok(Transformed::no(plan));
    }
    // Columns that a dropped projection had hidden may clash in a way that only schema construction detects: then the
    // plan stays as it is.
    Ok(build_plan::build_plan(&graph, &tree, plan.schema()).map_or_else(|_| Transformed::no(plan), Transformed::yes))
}
