//! The logical optimizer: rules and estimates that Kiln adds to DataFusion's optimizer, and their configuration.
//!
//! It never looks up names and never runs a plan; the crate `operators` turns its plans into physical ones.
//!
//! Start at [`common_subplans::optimize`], which takes a plan through every step:
//!
//! - `rule_runner.rs` runs the rules over a plan, each once: DataFusion's (simplify, decorrelate, push down) and
//!   Kiln's,
//! - `join_order/` orders joins by cost, based on the estimates of `estimate/`; `row_estimates.rs` shows these in
//!   EXPLAIN,
//! - `common_subplans/` computes repeated parts of a plan once, for example a WITH query that is read twice,
//! - `correlated_subqueries/` rewrites correlated subqueries that cannot be decorrelated; an operator evaluates them
//!   row by row,
//! - `semi_join_reduction/` finds semi-join reductions for queries on several workers,
//! - `series/` is the logical node of `generate_series`,
//! - `single_distinct_aggregate.rs`, `filter_pushdown_limit.rs`, `conditional_rule.rs`, `nested_lateral_joins.rs`,
//!   `exists_in_decorrelation.rs` and `ungrouped_aggregate_filters.rs` each wrap one of DataFusion's rules;
//!   `union_column_names.rs` is a small rule of Kiln's,
//! - `column_origin.rs`, `repeated_expressions.rs`, `subquery_checks.rs`, `scalar_subqueries.rs` and `wide_unions.rs`
//!   examine or adjust plans for the other files.
//!
//! `SET kiln.optimizer = off` leaves out Kiln's join order and its way of running the rules; tests compare results with
//! that configuration. The wrapped rules stay, because DataFusion's are wrong or slow without the wrappers.

mod column_origin;
pub mod common_subplans;
mod conditional_rule;
pub mod correlated_subqueries;
mod datafusion_rules;
mod estimate;
mod exists_in_decorrelation;
pub mod filter_pushdown_limit;
mod join_order;
mod nested_lateral_joins;
mod repeated_expressions;
mod row_estimates;
mod rule_runner;
mod scalar_subqueries;
mod semi_join_reduction;
pub mod series;
mod single_distinct_aggregate;
mod subquery_checks;
mod ungrouped_aggregate_filters;
mod union_column_names;
mod wide_unions;

#[cfg(test)]
pub(crate) mod test_fixtures;

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::execution::config::SessionConfig;
use datafusion::optimizer::{Optimizer, OptimizerRule};

pub(crate) use self::column_origin::is_distribution_key;
pub use self::common_subplans::OptimizedPlan;
use self::conditional_rule::ConditionalRule;
use self::datafusion_rules::RuleKind;
pub(crate) use self::estimate::estimate_relation;
pub(crate) use self::estimate::semi_join_selectivity;
use self::exists_in_decorrelation::PlaceholderDecorrelation;
use self::filter_pushdown_limit::BoundedFilterPushdown;
use self::join_order::JoinOrder;
use self::nested_lateral_joins::NestedLateralJoins;
pub use self::row_estimates::{EstimatedNodeKind, RowEstimate};
pub use self::rule_runner::{RewrittenPlan, run_rules, with_stack};
pub use self::scalar_subqueries::ScalarSubquery;
pub use self::semi_join_reduction::{ReductionState, SemiJoinReduction};
use self::single_distinct_aggregate::SingleDistinctWithoutSums;
use self::ungrouped_aggregate_filters::FiltersAboveUngroupedAggregates;
use self::union_column_names::UnionInputNames;

/// Returns the optimizer's rules in order, with Kiln's own unless `has_kiln_rules` is false.
#[must_use]
pub fn rules(is_on: bool) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let rules = Optimizer::new().rules.into_iter();
    let rules = rules.map(SingleDistinctWithoutSums::wrap).map(FiltersAboveUngroupedAggregates::wrap);
    let rules = rules.map(BoundedFilterPushdown::wrap);
    let rules = rules.map(NestedLateralJoins::wrap).map(PlaceholderDecorrelation::wrap);
    let names: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(UnionInputNames);
    let mut rules: Vec<_> = std::iter::once(names).chain(rules).collect();
    if !is_on {
        return rules;
    }
    // `eliminate_cross_join` would put joins back in the order of their inputs; the two leaf rules extract struct
    // fields, which no SQL type has; the last two act only under settings that Kiln never turns on.
    let unwanted = [
        RuleKind::EliminateCrossJoin,
        RuleKind::ExtractLeafExpressions,
        RuleKind::PushDownLeafProjections,
        RuleKind::FilterNullJoinKeys,
        RuleKind::UnionsToFilter,
    ];
    rules.retain(|rule| !unwanted.iter().any(|kind| kind.matches(rule.as_ref())));
    let of_kind = |kind: RuleKind| rules.iter().find(|rule| kind.matches(rule.as_ref())).cloned();
    // After pushdown, the rules to which a filter's new position gives work, then the join order: by now filters lie at
    // the scans, and no projections stand between the joins yet. DataFusion achieves the same by running all rules
    // again, and once more to see that nothing changes.
    let after_pushdown = [
        RuleKind::SimplifyExpressions,
        RuleKind::EliminateFilter,
        RuleKind::PropagateEmptyRelation,
        RuleKind::ExtractEquijoinPredicate,
        RuleKind::EliminateOuterJoin,
    ];
    let push_down: Vec<_> = of_kind(RuleKind::PushDownFilter).into_iter().collect();
    let added = after_pushdown.into_iter().filter_map(of_kind).chain(push_down.clone());
    let added = added.chain([Arc::new(JoinOrder) as _]).chain(push_down);
    let added: Vec<_> = added.chain(of_kind(RuleKind::ExtractEquijoinPredicate)).collect();
    let folding = of_kind(RuleKind::SimplifyExpressions).map(ConditionalRule::for_constant_folding);
    let pushed = rules.iter().position(|rule| RuleKind::PushDownFilter.matches(rule.as_ref()));
    let pushed = pushed.map_or(rules.len(), |at| at + 1);
    rules.splice(pushed..pushed, added);
    // Merging projections brings constants into expressions.
    rules.extend(folding);
    for rule in rules.iter_mut().filter(|rule| RuleKind::RewriteSetComparison.matches(rule.as_ref())) {
        *rule = ConditionalRule::for_set_comparisons(Arc::clone(rule));
    }
    rules
}

/// Returns whether Kiln's own rules are among those of a statement.
pub(crate) fn has_kiln_rules(state: &SessionState) -> bool {
    state.optimizer().rules.iter().any(|rule| RuleKind::JoinOrder.matches(rule.as_ref()))
}

/// Returns `config` with the settings of DataFusion's planners that the rules and their plans rely on.
#[must_use]
pub fn configure(mut config: SessionConfig, is_on: bool) -> SessionConfig {
    if is_on {
        // The list contains a rule twice where it has to run twice.
        config.options_mut().optimizer.max_passes = 1;
        // The join order has chosen build sides, with better estimates than physical plans have.
        config.options_mut().optimizer.join_reordering = false;
        // So many build-side keys are pushed into the probe-side scan as an IN list, which looks them up one by one.
        config.options_mut().optimizer.hash_join_inlist_pushdown_max_distinct_values = 1_024;
    }
    config
}
