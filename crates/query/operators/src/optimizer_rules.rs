//! Physical optimizer rules: DataFusion's, with corrections, and Kiln's own.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use functions::error::to_datafusion;
use plan::OperatorRules;
use types::interrupt;

use crate::datafusion_rules::{Rule, RuleScope, ScopedRule, datafusion_rules};
use crate::rank_limit::LimitRanks;
use crate::single_threaded_rules::{self, MultiThreadedRule};

/// Returns DataFusion's rules with corrections, and Kiln's own rules unless `is_on` is false.
pub(crate) fn rules(is_on: bool) -> OperatorRules {
    let rules = datafusion_rules();
    let rules = if is_on {
        let mut rules = single_threaded_rules::restrict_rules(rules);
        rules.push(ScopedRule { rule: Arc::new(LimitRanks), scope: RuleScope::Any });
        rules
    } else {
        rules
    };
    rules.into_iter().map(InterruptibleRule::wrap).collect()
}

/// Returns whether a rule has to run when a plan for a single thread gets several partitions: it was skipped, or has to
/// run again after those that were.
pub(crate) fn runs_for_partitions(rule: &dyn PhysicalOptimizerRule) -> bool {
    let own = (rule as &dyn Any).downcast_ref::<InterruptibleRule>();
    own.is_none_or(|own| own.scope != RuleScope::Any)
}

/// Returns whether a rule of a session is the one that chooses the partition mode of joins.
#[must_use]
pub fn selects_joins(rule: &dyn PhysicalOptimizerRule) -> bool {
    let Some(own) = (rule as &dyn Any).downcast_ref::<InterruptibleRule>() else { return false };
    let inner = own.rule.as_ref() as &dyn Any;
    let inner = inner.downcast_ref::<MultiThreadedRule>().map_or(inner, |rule| rule.inner().as_ref() as &dyn Any);
    inner.is::<JoinSelection>()
}

/// Rule that fails before it runs if planning was cancelled.
#[derive(Debug)]
struct InterruptibleRule {
    rule: Rule,
    scope: RuleScope,
}

impl InterruptibleRule {
    fn wrap(ScopedRule { rule, scope }: ScopedRule) -> Rule {
        Arc::new(Self { rule, scope })
    }
}

impl PhysicalOptimizerRule for InterruptibleRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        interrupt::check().map_err(to_datafusion)?;
        self.rule.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        interrupt::check().map_err(to_datafusion)?;
        self.rule.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rule_selects_joins() {
        for is_on in [true, false] {
            assert_eq!(rules(is_on).iter().filter(|rule| selects_joins(rule.as_ref())).count(), 1);
        }
    }

    #[test]
    fn rules_that_ran_for_a_single_thread_do_not_run_again() {
        let rules = rules(true);
        let again: Vec<&str> =
            rules.iter().filter(|rule| runs_for_partitions(rule.as_ref())).map(|rule| rule.name()).collect();
        assert!(again.contains(&"EnsureRequirements") && again.contains(&"LimitPushdown"), "{again:?}");
        assert!(!again.contains(&LimitRanks.name()) && !again.contains(&"aggregate_statistics"), "{again:?}");
    }
}
