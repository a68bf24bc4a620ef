//! Filters pushed through operators, kept from where their columns could be taken for others.
//!
//! DataFusion finds the column that a filter reads in an operator's rows by its name alone, so that of two columns `a` it is the
//! first. Operators that give two columns of one name get no filters from above; within them filters are pushed as ever.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{HashSet, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::undivided;
use crate::ranks::LimitRanks;

/// DataFusion's rules for operators, with care taken of names, and Kiln's own unless `is_on` is false.
pub(crate) fn physical_rules(is_on: bool) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let careful = |rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>| {
        if rule.name().starts_with("FilterPushdown") {
            Arc::new(Unambiguous { rule }) as Arc<dyn PhysicalOptimizerRule + Send + Sync>
        } else {
            rule
        }
    };
    let rules = PhysicalOptimizer::new().rules.into_iter().map(careful);
    if is_on { undivided::sparing(rules).chain([Arc::new(LimitRanks) as _]).collect() } else { rules.collect() }
}

/// A rule that pushes filters, applied between operators whose columns have names of their own.
#[derive(Debug)]
struct Unambiguous {
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl PhysicalOptimizerRule for Unambiguous {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let fenced = self.fence(plan, config)?;
        let pushed = self.rule.optimize(fenced.data, config)?;
        if !fenced.transformed {
            return Ok(pushed);
        }
        let whole = pushed.transform_up(|operator| {
            let inner = operator.downcast_ref::<Fence>().map(|fence| Arc::clone(&fence.inner));
            Ok(inner.map_or_else(|| Transformed::no(operator), Transformed::yes))
        });
        whole.map(|whole| whole.data)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

impl Unambiguous {
    /// `plan` with fences around the nearest operators below it that are ambiguous; their insides are done.
    fn fence(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        plan.map_children(|child| {
            if is_ambiguous(&child) {
                let inner = self.optimize(child, config)?;
                Ok(Transformed::yes(Arc::new(Fence { inner }) as Arc<dyn ExecutionPlan>))
            } else {
                self.fence(child, config)
            }
        })
    }
}

/// Whether a name may mean several columns of what an operator gives, or of what it reads by name again.
fn is_ambiguous(operator: &Arc<dyn ExecutionPlan>) -> bool {
    let narrows = operator.downcast_ref::<FilterExec>().is_some_and(|filter| filter.projection().is_some());
    has_namesakes(operator) || (narrows && operator.children().into_iter().any(has_namesakes))
}

fn has_namesakes(operator: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = operator.schema();
    let mut seen = HashSet::with_capacity(schema.fields().len());
    schema.fields().iter().any(|field| !seen.insert(field.name().as_str()))
}

/// Stands for an operator while the rule looks at those above it: a leaf, which takes no filter.
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
