//! Cost-based join ordering.
//!
//! In reading order:
//!
//! - `graph.rs` turns a tree of joins into a join graph, whose leaves `leaf_set.rs` represents as bit sets,
//! - `implied.rs` adds to leaves the filters that follow from join equalities (transitivity),
//! - `sizes.rs` estimates the size of every subset of leaves, `confined.rs` that of dimensions restricted by others,
//! - `search.rs` searches for the cheapest tree,
//! - `build.rs` makes a plan of the tree; the smaller input is on the left, which is the build side of hash joins,
//! - `early.rs` and, for outer joins, `early_outer.rs` aggregate one input before the joins (eager aggregation).

mod build;
mod confined;
mod early;
mod early_outer;
mod graph;
mod implied;
mod leaf_set;
mod search;
mod sizes;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{HashSet, JoinType, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use self::graph::Graph;
use self::sizes::Sizes;
use crate::relation_of;

/// Optimizer rule that orders joins by cost. It runs after filters were pushed down.
#[derive(Debug, Default)]
pub(crate) struct JoinOrder;

impl JoinOrder {
    pub(crate) const NAME: &'static str = "join_order";
}

impl OptimizerRule for JoinOrder {
    fn name(&self) -> &str {
        Self::NAME
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
            && let Some(early) =
                early::aggregated(aggregate).transpose().or_else(|| early_outer::aggregated(aggregate).transpose())
        {
            let early = early?;
            return Ok(Transformed::yes(reorder(early)?.data));
        }
        match Graph::of(&plan) {
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
        let relation = relation_of(input);
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
fn reorder_joins(plan: LogicalPlan, mut graph: Graph) -> Result<Transformed<LogicalPlan>> {
    let mut is_changed = false;
    for leaf in &mut graph.leaves {
        let ordered = reorder(Arc::unwrap_or_clone(Arc::clone(&leaf.plan)))?;
        is_changed |= ordered.transformed;
        leaf.plan = Arc::new(ordered.data);
    }
    is_changed |= implied::add(&mut graph);
    let sizes = Sizes::of(&graph);
    let tree = search::cheapest(&graph, &sizes);
    if !is_changed && graph.written.as_ref() == Some(&tree) {
        return Ok(Transformed::no(plan));
    }
    // Columns that a dropped projection had hidden may clash in a way that only schema construction detects: then the
    // plan stays as it is.
    Ok(build::plan(&graph, &tree, plan.schema()).map_or_else(|_| Transformed::no(plan), Transformed::yes))
}
