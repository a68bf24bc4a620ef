//! Rules for single-threaded plans, which the engine replaces: their operators need a form, but no exchanges.
//!
//! DataFusion's rules traverse a plan about thirty times, mostly to divide rows among threads and to merge them again.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements};
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::datafusion_rules::{Rule, RuleScope, ScopedRule, ensures_requirements};

/// Restricts `rules` so that plans with one target partition run only those that they need, and adds those that only
/// such plans need.
pub(crate) fn restrict_rules(rules: Vec<ScopedRule>) -> Vec<ScopedRule> {
    let mut restricted = Vec::with_capacity(rules.len() + 2);
    let multi_threaded =
        |rule| ScopedRule { rule: Arc::new(MultiThreadedRule(rule)) as Rule, scope: RuleScope::Partitioned };
    for rule in rules {
        if (rule.rule.as_ref() as &dyn Any).is::<SanityCheckPlan>() {
            restricted.push(multi_threaded(Arc::new(EnsureOrders)));
        }
        let ensures = ensures_requirements(&rule.rule);
        restricted.push(if rule.scope == RuleScope::Partitioned { multi_threaded(rule.rule) } else { rule });
        if ensures {
            let rule = Arc::new(EnsureSingleThreadedRequirements);
            restricted.push(ScopedRule { rule, scope: RuleScope::AnyAndRepartitioned });
        }
    }
    restricted
}

fn is_multi_threaded(config: &ConfigOptions) -> bool {
    1 < config.execution.target_partitions
}

/// Rule that runs only on plans with several target partitions.
#[derive(Debug)]
pub(crate) struct MultiThreadedRule(Rule);

impl MultiThreadedRule {
    pub(crate) fn inner(&self) -> &Rule {
        &self.0
    }
}

impl PhysicalOptimizerRule for MultiThreadedRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if is_multi_threaded(config) { self.0.optimize(plan, config) } else { Ok(plan) }
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if is_multi_threaded(context.config_options()) { self.0.optimize_with_context(plan, context) } else { Ok(plan) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Rule for single-threaded plans, in place of DataFusion's `EnsureRequirements`, that merges the partitions of unions and adds sorts where an operator requires it.
#[derive(Debug)]
struct EnsureSingleThreadedRequirements;

impl PhysicalOptimizerRule for EnsureSingleThreadedRequirements {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if is_multi_threaded(config) {
            Ok(plan)
        } else {
            plan.transform_up(|operator| meet_requirements(operator, true)).data()
        }
    }

    fn name(&self) -> &'static str {
        "MeetRequirements"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Rule that adds sorts which DataFusion wrongly left out: a join forgets which columns of its second input are
/// constant, and inputs may be swapped after sorts by constants were removed.
#[derive(Debug)]
struct EnsureOrders;

impl PhysicalOptimizerRule for EnsureOrders {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|operator| meet_requirements(operator, false)).data()
    }

    fn name(&self) -> &'static str {
        "MeetOrders"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn meet_requirements(
    operator: Arc<dyn ExecutionPlan>,
    merges_partitions: bool,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let distributions = operator.input_distribution_requirements().into_per_child();
    let asked = distributions.iter().zip(operator.required_input_ordering());
    let before = operator.children();
    let mut is_changed = false;
    let mut after = Vec::with_capacity(before.len());
    for (child, (distribution, order)) in before.into_iter().zip(asked) {
        let distribution = if merges_partitions { distribution } else { &Distribution::UnspecifiedDistribution };
        let given = meet_input_requirements(child, distribution, order)?;
        is_changed |= !Arc::ptr_eq(child, &given);
        after.push(given);
    }
    if !is_changed {
        return Ok(Transformed::no(operator));
    }
    replace_children_if_necessary(operator, after).map(Transformed::yes)
}

fn meet_input_requirements(
    child: &Arc<dyn ExecutionPlan>,
    distribution: &Distribution,
    order: Option<OrderingRequirements>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut child = Arc::clone(child);
    if 1 < child.output_partitioning().partition_count()
        && !matches!(distribution, Distribution::UnspecifiedDistribution)
    {
        child = Arc::new(CoalescePartitionsExec::new(child));
    }
    let Some(order) = order.map(OrderingRequirements::into_single) else { return Ok(child) };
    let known = child.equivalence_properties();
    if known.ordering_satisfy_requirement(order.clone())? {
        return Ok(child);
    }
    let mut keys: Vec<_> = order.into();
    keys.retain(|key| known.is_expr_constant(&key.expr).is_none());
    let Some(order) = LexOrdering::new(keys.into_iter().map(Into::into)) else { return Ok(child) };
    let is_divided = 1 < child.output_partitioning().partition_count();
    Ok(Arc::new(SortExec::new(order, child).with_preserve_partitioning(is_divided)))
}
