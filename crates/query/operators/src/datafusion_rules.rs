//! Kiln's list of DataFusion's physical optimizer rules, with what Kiln knows about each.
//!
//! The list is DataFusion's own, rule by rule, so that nothing depends on a rule's name. A test compares it with
//! DataFusion's after an upgrade.
//!
//! DataFusion finds the column that a filter reads by its name alone, and takes the first if two columns have the same
//! name. Operators with ambiguous columns therefore get no filters from above; within them filters are pushed as usual.
//!
//! DataFusion moves a sort below a limit if the operator above requires that order, and removes the sort that a limit
//! counts by if nobody reads its keys any more. Both change which rows the limit passes. So limits, and the sorts below
//! them, are hidden from that rule.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::HashSet;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::aggregate_statistics::AggregateStatistics;
use datafusion::physical_optimizer::combine_partial_final_agg::CombinePartialFinalAggregate;
use datafusion::physical_optimizer::ensure_coop::EnsureCooperative;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_optimizer::hash_join_buffering::HashJoinBuffering;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion::physical_optimizer::limit_pushdown_past_window::LimitPushPastWindows;
use datafusion::physical_optimizer::limited_distinct_aggregation::LimitedDistinctAggregation;
use datafusion::physical_optimizer::output_requirements::OutputRequirements;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_optimizer::pushdown_sort::PushdownSort;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_optimizer::topk_aggregation::TopKAggregation;
use datafusion::physical_optimizer::topk_repartition::TopKRepartition;
use datafusion::physical_optimizer::update_aggr_exprs::OptimizeAggregateOrder;
use datafusion::physical_optimizer::window_topn::WindowTopN;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::bounded_filter_pushdown::BoundedFilterPushdownRule;
use crate::fenced_rule::{FencedRule, is_limit};

pub(crate) type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Rule with the plans that need it.
pub(crate) struct ScopedRule {
    pub(crate) rule: Rule,
    pub(crate) scope: RuleScope,
}

/// Plans that need a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleScope {
    /// Plans with several target partitions.
    Partitioned,
    /// All plans.
    Any,
    /// All plans, and again those that get more partitions later.
    AnyAndRepartitioned,
}

/// Returns DataFusion's rules in order, with corrections.
pub(crate) fn datafusion_rules() -> Vec<ScopedRule> {
    use RuleScope::{Any, AnyAndRepartitioned, Partitioned};
    vec![
        scoped(OutputRequirements::new_add_mode(), Partitioned),
        scoped(AggregateStatistics::new(), Any),
        scoped(JoinSelection::new(), Partitioned),
        scoped(LimitedDistinctAggregation::new(), Partitioned),
        filter_pushdown(BoundedFilterPushdownRule::for_static_filters(FilterPushdown::new()), Any),
        scoped(WindowTopN::new(), Partitioned),
        ScopedRule { rule: ensure_requirements(), scope: Partitioned },
        scoped(CombinePartialFinalAggregate::new(), AnyAndRepartitioned),
        scoped(OptimizeAggregateOrder::new(), AnyAndRepartitioned),
        scoped(ProjectionPushdown::new(), Partitioned),
        scoped(OutputRequirements::new_remove_mode(), Partitioned),
        scoped(TopKAggregation::new(), Partitioned),
        scoped(LimitPushPastWindows::new(), Any),
        scoped(HashJoinBuffering::new(), Partitioned),
        scoped(LimitPushdown::new(), AnyAndRepartitioned),
        scoped(TopKRepartition::new(), Partitioned),
        scoped(ProjectionPushdown::new(), Partitioned),
        scoped(PushdownSort::new(), Any),
        scoped(EnsureCooperative::new(), AnyAndRepartitioned),
        filter_pushdown(
            BoundedFilterPushdownRule::for_dynamic_filters(FilterPushdown::new_post_optimization()),
            Partitioned,
        ),
        scoped(SanityCheckPlan::new(), AnyAndRepartitioned),
    ]
}

fn scoped(rule: impl PhysicalOptimizerRule + Send + Sync + 'static, scope: RuleScope) -> ScopedRule {
    ScopedRule { rule: Arc::new(rule), scope }
}

/// Returns a rule that pushes filters, restricted to operators without ambiguous columns.
fn filter_pushdown(rule: BoundedFilterPushdownRule, scope: RuleScope) -> ScopedRule {
    ScopedRule { rule: FencedRule::wrap(Arc::new(rule), |operator, _| is_ambiguous(operator)), scope }
}

/// Returns the rule that adds exchanges and sorts; it sees no limits and no sorts that a limit counts by.
fn ensure_requirements() -> Rule {
    FencedRule::wrap(Arc::new(EnsureRequirements::new()), |operator, is_counted| {
        is_limit(operator) || (is_counted && operator.is::<SortExec>())
    })
}

/// Returns whether a rule of [`datafusion_rules`] adds exchanges and sorts where operators require them.
pub(crate) fn ensures_requirements(rule: &Rule) -> bool {
    let fenced = (rule.as_ref() as &dyn Any).downcast_ref::<FencedRule>();
    fenced.is_some_and(|fenced| (fenced.rule().as_ref() as &dyn Any).is::<EnsureRequirements>())
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

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    fn names(rules: impl IntoIterator<Item = Rule>) -> Vec<String> {
        rules.into_iter().map(|rule| rule.name().to_owned()).collect()
    }

    #[test]
    fn the_list_has_the_rules_of_datafusion() {
        let (known, current) =
            (names(datafusion_rules().into_iter().map(|it| it.rule)), names(PhysicalOptimizer::new().rules));
        assert_eq!(
            known, current,
            "DataFusion's physical optimizer has other rules than the list in operators/src/datafusion_rules.rs (left): \
             bring the list up to date, and decide for each new rule which plans need it (RuleScope)"
        );
    }
}
