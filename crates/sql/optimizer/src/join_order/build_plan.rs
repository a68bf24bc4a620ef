//! Builds the plan of a tree over a graph's leaves, with every condition as low as the leaves that it reads allow.

use std::sync::Arc;

use datafusion::common::{DFSchema, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, Join, JoinConstraint, LogicalPlan, Operator, Projection};

use super::graph::{Attachment, JoinGraph};
use super::join_tree_search::Tree;
use super::leaf_set::LeafSet;

/// Returns the plan of `tree`, with the columns of `schema`.
pub(super) fn build_plan(graph: &JoinGraph, tree: &Tree, schema: &DFSchema) -> Result<LogicalPlan> {
    let (plan, _) = subtree_plan(graph, tree)?;
    let columns = schema.columns();
    if plan.schema().columns() == columns {
        return Ok(plan);
    }
    let columns = columns.into_iter().map(Expr::Column).collect();
    Projection::try_new(columns, Arc::new(plan)).map(LogicalPlan::Projection)
}

/// Returns the plan of `tree`, with the columns of all leaves.
pub(super) fn joined_plan(graph: &JoinGraph, tree: &Tree) -> Result<LogicalPlan> {
    subtree_plan(graph, tree).map(|(plan, _)| plan)
}

/// Returns the plan of a leaf, filtered by the conditions that read only this leaf.
pub(super) fn leaf_plan(graph: &JoinGraph, leaf: usize) -> LogicalPlan {
    let plan = LogicalPlan::clone(&graph.leaves[leaf].plan);
    if graph.leaves[leaf].attachment.is_some() {
        return plan;
    }
    let own = LeafSet::from_leaf(leaf);
    let conditions = graph.conditions.iter().filter(|condition| condition.leaves == own);
    let equal = graph.classes.iter().flat_map(|class| {
        let members: Vec<&Expr> = class.members.iter().filter(|(of, _)| *of == leaf).map(|(_, expr)| expr).collect();
        members.windows(2).map(|pair| pair[0].clone().eq(pair[1].clone())).collect::<Vec<_>>()
    });
    match conjunction(conditions.map(|condition| condition.expr.clone()).chain(equal)) {
        Some(predicate) => filter(predicate, plan),
        None => plan,
    }
}

fn filter(predicate: Expr, plan: LogicalPlan) -> LogicalPlan {
    match Filter::try_new(predicate, Arc::new(plan)) {
        Ok(filter) => LogicalPlan::Filter(filter),
        Err(error) => unreachable!("a condition of the join graph is not boolean: {error}"),
    }
}

fn subtree_plan(graph: &JoinGraph, tree: &Tree) -> Result<(LogicalPlan, LeafSet)> {
    let (left, right) = match tree {
        Tree::Leaf(index) => return Ok((leaf_plan(graph, *index), LeafSet::from_leaf(*index))),
        Tree::Join(sides) => (subtree_plan(graph, &sides.0)?, subtree_plan(graph, &sides.1)?),
    };
    let set = left.1.union(right.1);
    let conditions = new_conditions(graph, left.1, right.1);
    let attachment = |set: LeafSet| set.single().and_then(|leaf| graph.leaves[leaf].attachment.as_ref());
    let plan = match (attachment(left.1), attachment(right.1)) {
        (None, None) => inner(graph, left, right, conditions)?,
        (None, Some(attached)) => with_conditions(attach(attached, left.0, right.0, false)?, conditions),
        (Some(attached), _) => with_conditions(attach(attached, left.0, right.0, true)?, conditions),
    };
    Ok((plan, set))
}

/// Returns the conditions that can be evaluated on the union of two sets but on neither alone.
fn new_conditions(graph: &JoinGraph, left: LeafSet, right: LeafSet) -> Vec<(LeafSet, Expr)> {
    let decides = |set: LeafSet, leaves: LeafSet| {
        let is_attached_alone = set.single().is_some_and(|leaf| graph.leaves[leaf].attachment.is_some());
        set.contains(leaves) && !is_attached_alone
    };
    graph
        .conditions
        .iter()
        .filter(|condition| {
            decides(left.union(right), condition.leaves)
                && !decides(left, condition.leaves)
                && !decides(right, condition.leaves)
        })
        .map(|condition| (condition.leaves, condition.expr.clone()))
        .collect()
}

fn inner(
    graph: &JoinGraph,
    left: (LogicalPlan, LeafSet),
    right: (LogicalPlan, LeafSet),
    conditions: Vec<(LeafSet, Expr)>,
) -> Result<LogicalPlan> {
    let member = |members: &[(usize, Expr)], set: LeafSet| {
        members.iter().find(|(leaf, _)| set.contains_leaf(*leaf)).map(|(_, expr)| expr.clone())
    };
    let mut on: Vec<(Expr, Expr)> = graph
        .classes
        .iter()
        .filter_map(|class| Some((member(&class.members, left.1)?, member(&class.members, right.1)?)))
        .collect();
    let mut filters = Vec::new();
    for (_, condition) in conditions {
        match key_pair(&condition, left.0.schema(), right.0.schema()) {
            Some(pair) => on.push(pair),
            None => filters.push(condition),
        }
    }
    let join = Join::try_new(
        Arc::new(left.0),
        Arc::new(right.0),
        on,
        conjunction(filters),
        JoinType::Inner,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?;
    Ok(LogicalPlan::Join(join))
}

/// Returns the sides of an equality as a pair of join keys, if one reads only the left input and the other only the
/// right.
fn key_pair(condition: &Expr, left: &DFSchema, right: &DFSchema) -> Option<(Expr, Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left: a, op: Operator::Eq, right: b }) = condition else { return None };
    let reads_only = |expr: &Expr, schema: &DFSchema| {
        let columns = expr.column_refs();
        !columns.is_empty() && columns.iter().all(|column| schema.has_column(column))
    };
    if reads_only(a, left) && reads_only(b, right) {
        Some((Expr::clone(a), Expr::clone(b)))
    } else if reads_only(b, left) && reads_only(a, right) {
        Some((Expr::clone(b), Expr::clone(a)))
    } else {
        None
    }
}

fn attach(attachment: &Attachment, left: LogicalPlan, right: LogicalPlan, is_left: bool) -> Result<LogicalPlan> {
    let on = attachment.on.iter().cloned();
    let (join_type, on) = if is_left {
        (attachment.join_type.swap(), on.map(|(theirs, own)| (own, theirs)).collect())
    } else {
        (attachment.join_type, on.collect())
    };
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        attachment.filter.clone(),
        join_type,
        JoinConstraint::On,
        attachment.null_equality,
        attachment.null_aware,
    )?;
    Ok(LogicalPlan::Join(join))
}

fn with_conditions(plan: LogicalPlan, conditions: Vec<(LeafSet, Expr)>) -> LogicalPlan {
    match conjunction(conditions.into_iter().map(|(_, condition)| condition)) {
        Some(predicate) => filter(predicate, plan),
        None => plan,
    }
}
