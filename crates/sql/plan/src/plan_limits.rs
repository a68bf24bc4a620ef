//! Limits of a plan's depth and size, checked before libraries recurse over it.
//!
//! DataFusion recurses over plans and expressions without measuring the stack, and visits a shared part once for each
//! use. Plans with more levels than [`PLAN_DEPTH_MAX`], or more nodes than [`NODES_MAX`], are rejected after binding,
//! analysis, optimization and physical planning. The walks here are iterative.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::SetQuantifier;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use functions::error::to_datafusion;
use types::stack_limit::{PLAN_DEPTH_MAX, too_complex_error};

/// Maximum nodes of a plan, each counted as often as it is reached; expressions do not count.
pub const NODES_MAX: usize = 1 << 17;

/// Maximum nesting of `< ANY (subquery)` and the like, whose subqueries DataFusion copies two or three times each.
const COMPARISON_DEPTH_MAX: usize = 6;

/// Returns whether a comparison with a subquery's rows is NOT IN (`true`) or IN (`false`); `None` for others.
pub fn is_negated_membership(op: Operator, quantifier: &SetQuantifier) -> Option<bool> {
    match (op, quantifier) {
        (Operator::Eq, SetQuantifier::Any) => Some(false),
        (Operator::NotEq, SetQuantifier::All) => Some(true),
        _ => None,
    }
}

/// Maximum nesting of subqueries in plans for DataFusion's optimizer.
const SUBQUERY_DEPTH_MAX: usize = 12;

/// Checks a plan as [`check`] does, and returns it.
///
/// # Errors
/// `54001`.
pub fn check_and_return(plan: LogicalPlan) -> Result<LogicalPlan> {
    check(&plan)?;
    Ok(plan)
}

/// Checks that a logical plan, its expressions and their subqueries stay within the limits of levels and nodes.
///
/// # Errors
/// `54001`.
pub fn check(plan: &LogicalPlan) -> Result<()> {
    check_below(plan, 1, 0, &mut 0)
}

/// Checks a plan that lies at `level` within so many comparisons; recurses for subqueries only.
fn check_below(plan: &LogicalPlan, level: usize, comparisons: usize, nodes: &mut usize) -> Result<()> {
    let mut open = vec![(plan, level)];
    while let Some((plan, level)) = open.pop() {
        *nodes += 1;
        error_if_too_complex(level > PLAN_DEPTH_MAX || *nodes > NODES_MAX)?;
        open.extend(plan.inputs().into_iter().map(|input| (input, level + 1)));
        plan.apply_expressions(|expr| {
            check_expr(expr, level + 1, comparisons, nodes)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(())
}

fn check_expr(expr: &Expr, level: usize, comparisons: usize, nodes: &mut usize) -> Result<()> {
    let mut open = vec![(expr, level)];
    while let Some((expr, level)) = open.pop() {
        error_if_too_complex(level > PLAN_DEPTH_MAX)?;
        let (subquery, compares) = match expr {
            Expr::Column(_) | Expr::Literal(..) => continue,
            Expr::ScalarSubquery(subquery) => (Some(subquery), false),
            Expr::Exists(exists) => (Some(&exists.subquery), false),
            Expr::InSubquery(within) => (Some(&within.subquery), false),
            Expr::SetComparison(comparison) => {
                (Some(&comparison.subquery), is_negated_membership(comparison.op, &comparison.quantifier).is_none())
            }
            _ => (None, false),
        };
        if let Some(subquery) = subquery {
            let comparisons = comparisons + usize::from(compares);
            error_if_too_complex(comparisons > COMPARISON_DEPTH_MAX)?;
            check_below(&subquery.subquery, level + 1, comparisons, nodes)?;
        }
        expr.apply_children(|child| {
            open.push((child, level + 1));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(())
}

/// Checks that subqueries in expressions are not nested too deeply for DataFusion's optimizer.
///
/// # Errors
/// `54001`.
pub fn check_subqueries(plan: &LogicalPlan) -> Result<()> {
    check_subqueries_below(plan, 0)
}

fn check_subqueries_below(plan: &LogicalPlan, level: usize) -> Result<()> {
    error_if_too_complex(level > SUBQUERY_DEPTH_MAX)?;
    plan.apply(|node| {
        node.apply_subqueries(|subquery| {
            check_subqueries_below(subquery, level + 1)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// Checks that physical operators and their expressions stay within the limits of levels and nodes.
///
/// # Errors
/// `54001`.
pub fn check_operators(operators: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let mut nodes = 0;
    let mut open = vec![(operators, 1)];
    while let Some((operator, level)) = open.pop() {
        nodes += 1;
        error_if_too_complex(level > PLAN_DEPTH_MAX || nodes > 4 * NODES_MAX)?;
        open.extend(operator.children().into_iter().map(|child| (child, level + 1)));
        operator.apply_expressions(&mut |expr| {
            check_physical_expr(expr, level + 1)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(())
}

fn check_physical_expr(expr: &Arc<dyn PhysicalExpr>, level: usize) -> Result<()> {
    let mut open = vec![(expr, level)];
    while let Some((expr, level)) = open.pop() {
        error_if_too_complex(level > PLAN_DEPTH_MAX)?;
        open.extend(expr.children().into_iter().map(|child| (child, level + 1)));
    }
    Ok(())
}

fn error_if_too_complex(is_too_much: bool) -> Result<()> {
    if is_too_much { Err(to_datafusion(too_complex_error())) } else { Ok(()) }
}
