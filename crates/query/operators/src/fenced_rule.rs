//! Optimizer rules restricted to regions of a plan: certain operators are hidden from the rule, and optimized
//! separately with what is below them.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::datafusion_rules::Rule;

/// Predicate for operators to hide from a rule; the flag is true if a limit above counts the operator's rows in their
/// order.
pub(crate) type IsHidden = fn(&Arc<dyn ExecutionPlan>, bool) -> bool;

/// Rule that sees hidden operators as leaves, and optimizes each of them as the root of its own plan.
#[derive(Debug)]
pub(crate) struct FencedRule {
    rule: Rule,
    is_hidden: IsHidden,
}

impl PhysicalOptimizerRule for FencedRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let fenced = self.fence(plan, false, config)?;
        let done = self.rule.optimize(fenced.data, config)?;
        if !fenced.transformed {
            return Ok(done);
        }
        let unfenced = done.transform_up(|operator| {
            let inner = operator.downcast_ref::<Fence>().map(|fence| Arc::clone(&fence.inner));
            Ok(inner.map_or_else(|| Transformed::no(operator), Transformed::yes))
        });
        unfenced.map(|whole| whole.data)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

impl FencedRule {
    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Restricts a rule so that operators for which `is_hidden` is true are hidden from it.
    pub(crate) fn wrap(rule: Rule, is_apart: IsHidden) -> Rule {
        Arc::new(Self { rule, is_hidden: is_apart })
    }

    /// Replaces the nearest operators to hide below `plan` by fences, and optimizes what is inside.
    fn fence(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        is_counted: bool,
        config: &ConfigOptions,
    ) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        let is_counted = is_limit(&plan) || (is_counted && matches!(plan.maintains_input_order()[..], [true]));
        plan.map_children(|child| {
            if (self.is_hidden)(&child, is_counted) {
                let inner = self.optimize(child, config)?;
                Ok(Transformed::yes(Arc::new(Fence { inner }) as Arc<dyn ExecutionPlan>))
            } else {
                self.fence(child, is_counted, config)
            }
        })
    }
}

/// Returns true if an operator passes rows by their position.
pub(crate) fn is_limit(operator: &Arc<dyn ExecutionPlan>) -> bool {
    operator.is::<GlobalLimitExec>() || operator.is::<LocalLimitExec>()
}

/// Leaf that stands for a hidden operator while the rule runs; it accepts no filters.
#[derive(Debug)]
struct Fence {
    inner: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for Fence {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fence")
    }
}

impl ExecutionPlan for Fence {
    fn name(&self) -> &'static str {
        "Fence"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.inner.execute(partition, context)
    }
}
