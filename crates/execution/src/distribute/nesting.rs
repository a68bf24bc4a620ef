//! How deeply a plan is nested where it is written: who reads it gives up at a hundred messages in each other.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::NetworkBoundaryExt;

/// Deeper plans are not sent.
pub(super) const NESTING_MAX: usize = 90;

/// How deeply messages lie in each other where a stage is written: two for an operator or an expression in another.
pub(super) fn nesting(plan: &Arc<dyn ExecutionPlan>, depth: usize) -> usize {
    let mut deepest = 0;
    let walked = plan.apply_expressions(&mut |expression| {
        deepest = deepest.max(of_expression(expression));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("nothing fails on the way");
    let below = if plan.is_network_boundary() { 1 } else { depth + 2 };
    let deepest = depth + 2 + deepest;
    plan.children().into_iter().map(|child| nesting(child, below)).fold(deepest, usize::max)
}

fn of_expression(expression: &Arc<dyn PhysicalExpr>) -> usize {
    2 + expression.children().into_iter().map(of_expression).max().unwrap_or(0)
}
