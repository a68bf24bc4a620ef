//! Expressions that are put into a plan twice, and how much of that a statement may do.
//!
//! `x BETWEEN a AND b` compares `x` twice, and the right side of AND repeats the left one where it may fail. Within each other such expressions
//! double with every level, so that what is copied is counted.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use functions::external;
use session_context::Session;
use types::stack::too_complex;

/// Nodes of expressions that a statement copies at most.
pub(crate) const COPIES_MAX: usize = 1 << 20;

/// A copy of `expr`.
///
/// # Errors
/// `54001` where the statement has copied too much.
pub(super) fn copied(expr: &Expr, session: &Session) -> Result<Expr> {
    let nodes = nodes(expr)?;
    if session.count_copies(nodes) > COPIES_MAX {
        return Err(external(too_complex()));
    }
    Ok(expr.clone())
}

/// Nodes of an expression, those of subqueries apart.
fn nodes(expr: &Expr) -> Result<usize> {
    let mut nodes = 0;
    expr.apply(|_| {
        nodes += 1;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(nodes)
}

/// Whether to compute the expression costs nothing and gives the same each time: a column, a constant, and casts of them.
pub(super) fn is_cheap(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) | Expr::Placeholder(_) | Expr::OuterReferenceColumn(..) => true,
        Expr::Cast(cast) => is_cheap(&cast.expr),
        Expr::Alias(alias) => is_cheap(&alias.expr),
        _ => false,
    }
}
