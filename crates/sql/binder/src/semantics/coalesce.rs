//! Lowers nested COALESCE without duplicating its arguments.
//!
//! DataFusion rewrites COALESCE to a CASE that contains each argument but the last twice. Twelve nested calls with a
//! function between them take minutes to plan.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use functions::{external, first_not_null, is_coalesce, is_first_not_null, may_fail};
use session_context::EvaluationContext;
use types::SqlType;
use types::stack_limit::too_complex_error;

use super::duplication_limit::is_cheap;

/// Nesting limit of calls that become CASEs.
const COALESCE_LEVELS_MAX: usize = 8;

/// Replaces arguments that are COALESCE calls by the arguments of these.
pub(super) fn flatten_arguments(args: Vec<Expr>) -> Vec<Expr> {
    let parts = |arg| match arg {
        // A call with one argument exists only to have another name than its argument.
        Expr::ScalarFunction(call) if is_coalesce(&call.func) && call.args.len() > 1 => call.args,
        other => vec![other],
    };
    args.into_iter().flat_map(parts).collect()
}

/// Builds a call that evaluates all arguments, if one of them contains a COALESCE and the later ones are columns or
/// constants.
///
/// # Errors
/// SQLSTATE 54001 if the later ones are not, and too many calls are nested.
pub(super) fn eager_coalesce(
    args: &[Expr],
    common: &SqlType,
    session: &Arc<EvaluationContext>,
) -> Result<Option<Expr>> {
    let levels = args.iter().map(nesting_depth).max().unwrap_or(0);
    if levels == 0 {
        return Ok(None);
    }
    for later in args.iter().skip(1) {
        if !is_cheap(later) || may_fail(later)? {
            return if levels < COALESCE_LEVELS_MAX { Ok(None) } else { Err(external(too_complex_error())) };
        }
    }
    Ok(Some(first_not_null(args.to_vec(), common, session)?))
}

/// Returns the nesting depth of COALESCE calls; those that evaluate all arguments count as one level together.
fn nesting_depth(expr: &Expr) -> usize {
    let (mut deepest, mut open) = (0, vec![(expr, 0)]);
    while let Some((expr, around)) = open.pop() {
        let level = match expr {
            Expr::ScalarFunction(call) if is_coalesce(&call.func) => around + 1,
            Expr::ScalarFunction(call) if is_first_not_null(&call.func) => around.max(1),
            _ => around,
        };
        deepest = deepest.max(level);
        let walked = expr.apply_children(|child| {
            open.push((child, level));
            Ok(TreeNodeRecursion::Continue)
        });
        walked.expect("nothing fails on the way");
    }
    deepest
}
