//! COALESCE in COALESCE. DataFusion makes each a CASE, which has all arguments but the last twice, and asks for the types of these again and again: twelve of
//! them in each other, with a function between, take minutes.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use types::SqlType;
use types::stack::too_complex;

use super::Session;
use super::copies::is_cheap;
use super::guard::may_fail;
use crate::functions::{FIRST_NOT_NULL_NAME, external, first_not_null};

/// Calls in each other that become CASEs at most.
const LEVELS_MAX: usize = 8;

const COALESCE: &str = "coalesce";

/// The arguments with those of a COALESCE among them in its place.
pub(super) fn flattened(args: Vec<Expr>) -> Vec<Expr> {
    let parts = |arg| match arg {
        // One of a single argument is there to differ from that.
        Expr::ScalarFunction(call) if call.func.name() == COALESCE && call.args.len() > 1 => call.args,
        other => vec![other],
    };
    args.into_iter().flat_map(parts).collect()
}

/// A call that computes all of its arguments, where another lies in one of them and no argument is one that is better not computed.
///
/// # Errors
/// `54001` where one is, and too many calls lie in each other.
pub(super) fn eager(args: &[Expr], common: &SqlType, session: &Arc<Session>) -> Result<Option<Expr>> {
    let levels = args.iter().map(levels).max().unwrap_or(0);
    if levels == 0 {
        return Ok(None);
    }
    for later in args.iter().skip(1) {
        if !is_cheap(later) || may_fail(later)? {
            return if levels < LEVELS_MAX { Ok(None) } else { Err(external(too_complex())) };
        }
    }
    Ok(Some(first_not_null(args.to_vec(), common, session)?))
}

/// How many calls lie in each other; those that compute all of their arguments count as one together.
fn levels(expr: &Expr) -> usize {
    let (mut deepest, mut open) = (0, vec![(expr, 0)]);
    while let Some((expr, around)) = open.pop() {
        let level = match expr {
            Expr::ScalarFunction(call) if call.func.name() == COALESCE => around + 1,
            Expr::ScalarFunction(call) if call.func.name() == FIRST_NOT_NULL_NAME => around.max(1),
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
