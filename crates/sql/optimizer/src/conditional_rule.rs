//! Conditional rules: they rewrite a plan only if a quick check finds an expression that they apply to. Most plans have
//! none.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use plan::plan_has_expression;

use super::rule_runner::may_simplify;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Wrapper of a DataFusion rule that runs it only over plans with an expression of some kind.
#[derive(Debug)]
pub(super) struct ConditionalRule {
    rule: Rule,
    applies_to: fn(&Expr) -> bool,
}

impl ConditionalRule {
    /// Wraps a rule so that it runs only if a plan compares with ANY or ALL of a subquery's rows.
    pub(super) fn for_set_comparisons(rule: Rule) -> Rule {
        Arc::new(Self { rule, applies_to: |expr| matches!(expr, Expr::SetComparison(_)) })
    }

    /// Wraps a rule so that it runs only if a plan has a call or operation on literals only, such as merged projections
    /// leave behind.
    pub(super) fn for_constant_folding(rule: Rule) -> Rule {
        Arc::new(Self { rule, applies_to: is_foldable })
    }
}

fn is_foldable(expr: &Expr) -> bool {
    if matches!(expr, Expr::Literal(..) | Expr::Alias(_) | Expr::AggregateFunction(_) | Expr::WindowFunction(_)) {
        return false;
    }
    let mut count = 0;
    let only_literals = expr.apply_children(|child| {
        count += 1;
        let is_literal = matches!(child, Expr::Literal(..));
        Ok(if is_literal { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    0 < count && only_literals.is_ok_and(|ended| ended != TreeNodeRecursion::Stop)
}

impl OptimizerRule for ConditionalRule {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !plan_has_expression(&plan, self.applies_to)? {
            return Ok(Transformed::no(plan));
        }
        match self.rule.apply_order() {
            None => self.rule.rewrite(plan, config),
            Some(order) => {
                let rewrite = |node: LogicalPlan| {
                    if may_simplify(&node) { self.rule.rewrite(node, config) } else { Ok(Transformed::no(node)) }
                };
                match order {
                    ApplyOrder::TopDown => plan.transform_down_with_subqueries(rewrite),
                    ApplyOrder::BottomUp => plan.transform_up_with_subqueries(rewrite),
                }
            }
        }
    }
}
