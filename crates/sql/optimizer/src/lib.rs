//! The logical optimizer: rules and estimates that Kiln adds to DataFusion's optimizer, and their configuration.
//!
//! It never looks up names and never runs a plan; the crate `operators` turns its plans into physical ones.
//!
//! Start at [`shared::optimize`], which takes a plan through every step:
//!
//! - `passes.rs` runs the rules over a plan, each once: DataFusion's (simplify, decorrelate, push down) and Kiln's,
//! - `join_order/` orders joins by cost, based on the estimates of `estimate/`; `expected.rs` shows these in EXPLAIN,
//! - `shared/` computes repeated parts of a plan once, for example a WITH query that is read twice,
//! - `dependent/` rewrites correlated subqueries that cannot be decorrelated; an operator evaluates them row by row,
//! - `key_sets/` finds semi-join reductions for queries on several workers,
//! - `series/` is the logical node of `generate_series`,
//! - `distinct.rs`, `filter_size.rs`, `if_of_use.rs`, `lateral.rs`, `shallow_subqueries.rs` and `totals.rs` each wrap
//!   one of DataFusion's rules; `union_names.rs` is a small rule of Kiln's,
//! - `origin.rs`, `repeats.rs`, `subqueries.rs`, `scalar_subqueries.rs` and `union_tiers.rs` examine or adjust plans
//!   for the other files.
//!
//! `SET kiln.optimizer = off` leaves out Kiln's join order and its way of running the rules; tests compare results with
//! that configuration. The wrapped rules stay, because DataFusion's are wrong or slow without the wrappers.

pub mod dependent;
mod distinct;
mod estimate;
mod expected;
pub mod filter_size;
mod if_of_use;
mod join_order;
mod key_sets;
mod lateral;
mod origin;
mod passes;
mod repeats;
mod scalar_subqueries;
pub mod series;
mod shallow_subqueries;
pub mod shared;
mod subqueries;
mod totals;
mod union_names;
mod union_tiers;

#[cfg(test)]
pub(crate) mod fixtures;

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::execution::config::SessionConfig;
use datafusion::optimizer::{Optimizer, OptimizerRule};

use self::distinct::DistinctWithoutSums;
pub(crate) use self::estimate::existence_share;
pub(crate) use self::estimate::relation_of;
pub use self::expected::{Expected, ExpectedOf};
use self::filter_size::BoundedFilterPushdown;
use self::if_of_use::IfOfUse;
use self::join_order::JoinOrder;
pub use self::key_sets::{KeyQuestion, KeysAsked};
use self::lateral::AllLateralJoins;
pub(crate) use self::origin::is_distribution_key;
pub use self::passes::{Passed, passed, with_stack};
pub use self::scalar_subqueries::ScalarSubquery;
use self::shallow_subqueries::ShallowSubqueries;
pub use self::shared::Optimized;
use self::totals::FiltersAboveTotals;
use self::union_names::UnionNames;

/// Name of DataFusion's rule that pushes filters down.
const PUSH_DOWN: &str = "push_down_filter";

/// Name of DataFusion's rule that simplifies expressions and folds constants.
const SIMPLIFY: &str = "simplify_expressions";

/// Name of DataFusion's rule that makes join keys of equalities in join conditions, also of filters pushed into a join.
const KEYS_OF_JOINS: &str = "extract_equijoin_predicate";

/// Returns the optimizer's rules in order, with Kiln's own unless `is_on` is false.
#[must_use]
pub fn rules(is_on: bool) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let rules = Optimizer::new().rules.into_iter();
    let rules = rules.map(DistinctWithoutSums::instead_of).map(FiltersAboveTotals::instead_of);
    let rules = rules.map(BoundedFilterPushdown::wrap);
    let rules = rules.map(AllLateralJoins::instead_of).map(ShallowSubqueries::instead_of);
    let names: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(UnionNames);
    let mut rules: Vec<_> = std::iter::once(names).chain(rules).collect();
    if !is_on {
        return rules;
    }
    // `eliminate_cross_join` would put joins back in the order of their inputs; the two leaf rules extract struct
    // fields, which no SQL type has; the last two act only under settings that Kiln never turns on.
    let unwanted = [
        "eliminate_cross_join",
        "extract_leaf_expressions",
        "push_down_leaf_projections",
        "filter_null_join_keys",
        "unions_to_filter",
    ];
    rules.retain(|rule| !unwanted.contains(&rule.name()));
    let named = |name: &str| rules.iter().find(|rule| rule.name() == name).cloned();
    // After pushdown, the rules to which a filter's new position gives work, then the join order: by now filters lie at
    // the scans, and no projections stand between the joins yet. DataFusion achieves the same by running all rules
    // again, and once more to see that nothing changes.
    let settled = [SIMPLIFY, "eliminate_filter", "propagate_empty_relation", KEYS_OF_JOINS, "eliminate_outer_join"];
    let push_down: Vec<_> = named(PUSH_DOWN).into_iter().collect();
    let settled = settled.into_iter().filter_map(named).chain(push_down.clone());
    let settled = settled.chain([Arc::new(JoinOrder) as _]).chain(push_down).chain(named(KEYS_OF_JOINS));
    let settled: Vec<_> = settled.collect();
    let folding = named(SIMPLIFY).map(IfOfUse::folding);
    let pushed = rules.iter().position(|rule| rule.name() == PUSH_DOWN).map_or(rules.len(), |at| at + 1);
    rules.splice(pushed..pushed, settled);
    // Merging projections brings constants into expressions.
    rules.extend(folding);
    for rule in rules.iter_mut().filter(|rule| rule.name() == "rewrite_set_comparison") {
        *rule = IfOfUse::comparing_sets(Arc::clone(rule));
    }
    rules
}

/// Returns whether Kiln's own rules are among those of a statement.
pub(crate) fn is_on(state: &SessionState) -> bool {
    state.optimizer().rules.iter().any(|rule| rule.name() == JoinOrder::NAME)
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
