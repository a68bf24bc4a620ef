//! Better plans that mean the same: what Kiln adds to DataFusion's optimizer, and how that is configured.
//!
//! Never looks names up and never runs a plan: operators are made of plans in `operators`.
//!
//! Start at [`shared::optimize`], the way of a plan through all of it.
//!
//! - `passes.rs` goes over a plan with DataFusion's rules, which simplify, decorrelate and push down,
//! - `join_order/` orders joins by cost, on the estimates of `estimate/`; `expected.rs` shows these in EXPLAIN,
//! - `shared/` computes once what a plan computes several times, as a WITH query that is read twice,
//! - `dependent/` finds correlated subqueries that cannot be decorrelated, which operators evaluate row by row,
//! - `key_sets/` finds semi-join reductions for queries on several workers,
//! - `series/` is the node of `generate_series`.
//!
//! `SET kiln.optimizer = off` leaves out Kiln's join order and passes, as the oracle that tests compare with; a few rules of DataFusion's stay wrapped, because
//! they are wrong or slow without.

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

/// DataFusion's rule that pushes filters down.
const PUSH_DOWN: &str = "push_down_filter";

/// The one that computes what is constant.
const SIMPLIFY: &str = "simplify_expressions";

/// And the one that finds keys in the conditions of joins, filters among them that were pushed there.
const KEYS_OF_JOINS: &str = "extract_equijoin_predicate";

/// The optimizer's rules in order, with Kiln's own unless `is_on` is false.
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
    // They would put joins back in the order of their inputs; no type has fields that could be taken out of it early; and two are asked for by
    // settings that nobody has.
    let unwanted = [
        "eliminate_cross_join",
        "extract_leaf_expressions",
        "push_down_leaf_projections",
        "filter_null_join_keys",
        "unions_to_filter",
    ];
    rules.retain(|rule| !unwanted.contains(&rule.name()));
    let named = |name: &str| rules.iter().find(|rule| rule.name() == name).cloned();
    // What a filter decides where it has come to, then joins in their order: filters lie at the scans, and no projections are between the
    // joins yet. DataFusion finds the same by going through all rules again, and again to see that nothing changes any more.
    let settled = [SIMPLIFY, "eliminate_filter", "propagate_empty_relation", KEYS_OF_JOINS, "eliminate_outer_join"];
    let push_down: Vec<_> = named(PUSH_DOWN).into_iter().collect();
    let settled = settled.into_iter().filter_map(named).chain(push_down.clone());
    let settled = settled.chain([Arc::new(JoinOrder) as _]).chain(push_down).chain(named(KEYS_OF_JOINS));
    let settled: Vec<_> = settled.collect();
    let folding = named(SIMPLIFY).map(IfOfUse::folding);
    let pushed = rules.iter().position(|rule| rule.name() == PUSH_DOWN).map_or(rules.len(), |at| at + 1);
    rules.splice(pushed..pushed, settled);
    // After projections have become one.
    rules.extend(folding);
    for rule in rules.iter_mut().filter(|rule| rule.name() == "rewrite_set_comparison") {
        *rule = IfOfUse::comparing_sets(Arc::clone(rule));
    }
    rules
}

/// Whether Kiln's own rules are among those of a statement.
pub(crate) fn is_on(state: &SessionState) -> bool {
    state.optimizer().rules.iter().any(|rule| rule.name() == JoinOrder::NAME)
}

/// `config` with what the rules' plans need of DataFusion's physical planner.
#[must_use]
pub fn configure(mut config: SessionConfig, is_on: bool) -> SessionConfig {
    if is_on {
        // The list has twice what has to be done twice.
        config.options_mut().optimizer.max_passes = 1;
        // Build sides are chosen with better estimates than operators have.
        config.options_mut().optimizer.join_reordering = false;
        // Keys of a join's small side that the scan of the other looks up one by one.
        config.options_mut().optimizer.hash_join_inlist_pushdown_max_distinct_values = 1_024;
    }
    config
}
