//! Limit on the duplication of expressions within a statement.
//!
//! `x BETWEEN a AND b` compares `x` twice, and the right side of AND repeats the left one if it may fail. Nested
//! expressions of this kind double with every level, so the copied nodes are counted.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use functions::external;
use session_context::EvaluationContext;
use types::stack_limit::too_complex_error;

/// Limit on the expression nodes that a statement copies.
pub(crate) const COPIED_NODES_MAX: usize = 1 << 20;

/// Copies `expr`.
///
/// # Errors
/// SQLSTATE 54001 if the statement has copied too many nodes.
pub(super) fn copy_expr(expr: &Expr, session: &EvaluationContext) -> Result<Expr> {
    let nodes = nodes(expr)?;
    if session.add_duplicated_nodes(nodes) > COPIED_NODES_MAX {
        return Err(external(too_complex_error()));
    }
    Ok(expr.clone())
}

/// Returns the number of nodes of an expression, without subqueries.
fn nodes(expr: &Expr) -> Result<usize> {
    let mut nodes = 0;
    expr.apply(|_| {
        nodes += 1;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(nodes)
}

/// Returns whether the expression is free to evaluate repeatedly: a column, a constant, or a cast of one.
pub(super) fn is_cheap(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) | Expr::Placeholder(_) | Expr::OuterReferenceColumn(..) => true,
        Expr::Cast(cast) => is_cheap(&cast.expr),
        Expr::Alias(alias) => is_cheap(&alias.expr),
        _ => false,
    }
}
