//! The order of joins, by cost.
//!
//! A tree of joins becomes a graph (`graph.rs`), its leaves get the conditions that follow for them (`implied.rs`) and its subsets sizes
//! (`sizes.rs`, `confined.rs`), the cheapest tree is searched for (`search.rs`), and becomes a plan again (`build.rs`) whose smaller inputs lie on the left,
//! where hash joins build their tables. Below an aggregate, one input may be grouped before (`early.rs`, of outer
//! joins `early_outer.rs`).

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

/// Orders joins so that few rows flow through them. Runs after filters were pushed down.
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

/// `plan` with every tree of joins in it ordered, subqueries' included.
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

/// A FULL JOIN, which stays where it is, with the smaller input on the left.
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
    // What has a name twice cannot be put back in its place.
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
    // Columns that a projection hid may share a name, once it is gone, in a way that only schemas notice: then all stays.
    Ok(build::plan(&graph, &tree, plan.schema()).map_or_else(|_| Transformed::no(plan), Transformed::yes))
}
