//! Physical optimizer rules: DataFusion's, with corrections, and Kiln's own.
//!
//! DataFusion finds the column that a filter reads by its name alone, and takes the first if two columns have the same
//! name. Operators with ambiguous columns therefore get no filters from above; within them filters are pushed as usual.
//!
//! DataFusion moves a sort below a limit if the operator above requires that order, and removes the sort that a limit
//! counts by if nobody reads its keys any more. Both change which rows the limit passes. So limits, and the sorts below
//! them, are hidden from that rule.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::{HashSet, Result};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use functions::error::to_datafusion;
use plan::OperatorRules;
use types::interrupt;

use crate::fenced_rule::{FencedRule, is_limit};
use crate::filter_size::BoundedFilterPushdownRule;
use crate::rank_limit::LimitRanks;
use crate::single_threaded;

/// Returns DataFusion's rules with these corrections, and Kiln's own rules unless `is_on` is false.
pub(crate) fn rules(is_on: bool) -> OperatorRules {
    let careful = |rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>| match rule.name() {
        name if name.starts_with("FilterPushdown") => {
            FencedRule::wrap(BoundedFilterPushdownRule::wrap(rule), |operator, _| is_ambiguous(operator))
        }
        "EnsureRequirements" => FencedRule::wrap(rule, |operator, is_counted| {
            is_limit(operator) || (is_counted && operator.is::<SortExec>())
        }),
        _ => rule,
    };
    let rules = PhysicalOptimizer::new().rules.into_iter().map(careful);
    if is_on {
        single_threaded::restrict_rules(rules).chain([Arc::new(LimitRanks) as _]).map(InterruptibleRule::wrap).collect()
    } else {
        rules.map(InterruptibleRule::wrap).collect()
    }
}

/// Rule that fails before it runs if planning was cancelled.
#[derive(Debug)]
struct InterruptibleRule(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl InterruptibleRule {
    fn wrap(rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
        Arc::new(Self(rule))
    }
}

impl PhysicalOptimizerRule for InterruptibleRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        interrupt::check().map_err(to_datafusion)?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        interrupt::check().map_err(to_datafusion)?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Returns true if a column name is ambiguous in an operator's output, or in an input that it reads by name again.
fn is_ambiguous(operator: &Arc<dyn ExecutionPlan>) -> bool {
    let narrows = operator.downcast_ref::<FilterExec>().is_some_and(|filter| filter.projection().is_some());
    has_duplicate_names(operator) || (narrows && operator.children().into_iter().any(has_duplicate_names))
}

fn has_duplicate_names(operator: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = operator.schema();
    let mut seen = HashSet::with_capacity(schema.fields().len());
    schema.fields().iter().any(|field| !seen.insert(field.name().as_str()))
}
