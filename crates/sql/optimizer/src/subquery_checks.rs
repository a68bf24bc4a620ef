//! Validity checks of subqueries, in time linear in their nesting depth.
//!
//! DataFusion's check of a subquery also checks the subqueries inside it, which its walk over the plan visits too, so
//! that a subquery at level n is checked 2^n times. Here each is checked once, with placeholders for the subqueries
//! inside it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{
    EmptyRelation, Expr, Extension, InvariantLevel, LogicalPlan, Subquery, check_subquery_expr,
};

/// Checks the invariants of a plan with subqueries, before the optimizer's rules run.
///
/// # Errors
/// DataFusion's error for the first subquery that is not allowed in its position.
pub(crate) fn check_all(plan: &LogicalPlan) -> Result<()> {
    plan.schema().check_names()?;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Extension(Extension { node }) = node {
            node.check_invariants(InvariantLevel::Executable)?;
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some(subquery) = subquery_of(expr) {
                    check_subquery(node, subquery, expr)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Checks the subquery of `expr`, an expression of `node`, but not the subqueries inside it.
///
/// # Errors
/// DataFusion's error if the subquery is not allowed in its position.
pub(crate) fn check_subquery(node: &LogicalPlan, subquery: &Subquery, expr: &Expr) -> Result<()> {
    let inner = &subquery.subquery;
    if !inner.exists(has_subquery)? {
        return check_subquery_expr(node, inner, expr);
    }
    let shallow =
        inner.as_ref().clone().transform_down(|node| node.map_subqueries(|inner| Ok(to_placeholder(inner))))?;
    check_subquery_expr(node, &shallow.data, expr)
}

/// Returns whether an expression of the node itself has a subquery.
fn has_subquery(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found = found || expr.exists(|expr| Ok(subquery_of(expr).is_some()))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Replaces a subquery's plan by a single row with the same schema; its list of outer columns stays.
fn to_placeholder(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    let LogicalPlan::Subquery(subquery) = plan else { return Transformed::no(plan) };
    let schema = Arc::clone(subquery.subquery.schema());
    let row = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema });
    Transformed::yes(LogicalPlan::Subquery(Subquery { subquery: Arc::new(row), ..subquery }))
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(within) => Some(&within.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery),
        _ => None,
    }
}
