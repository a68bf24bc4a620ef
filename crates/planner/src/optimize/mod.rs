//! What Kiln adds to DataFusion's optimizer, and how that is configured.
//!
//! DataFusion's rules simplify, decorrelate and push down; `join_order/` orders joins by cost, on the estimates of `estimate/`.
//! `SET kiln.optimizer = off` leaves DataFusion's rules alone, as the oracle that tests compare with.

mod distinct;
mod estimate;
mod filter_pushdown;
mod join_order;
mod origin;
mod totals;
mod union_names;

#[cfg(test)]
pub(crate) mod fixtures;

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::execution::config::SessionConfig;
use datafusion::optimizer::{Optimizer, OptimizerRule};

use self::distinct::DistinctWithoutSums;
pub(crate) use self::estimate::{KnownRows, Relation};
pub(crate) use self::filter_pushdown::physical_rules;
use self::join_order::JoinOrder;
use self::totals::FiltersAboveTotals;
use self::union_names::UnionNames;

/// The optimizer's rules in order, with Kiln's own unless `is_on` is false.
#[must_use]
pub fn rules(is_on: bool) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let rules = Optimizer::new().rules.into_iter();
    let rules = rules.map(DistinctWithoutSums::instead_of).map(FiltersAboveTotals::instead_of);
    let names: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(UnionNames);
    let mut rules: Vec<_> = std::iter::once(names).chain(rules).collect();
    if !is_on {
        return rules;
    }
    // It would put joins back in the order of their inputs.
    rules.retain(|rule| rule.name() != "eliminate_cross_join");
    // Filters lie at the scans then, and no projections between the joins yet.
    let pushed = rules.iter().position(|rule| rule.name() == "push_down_filter").map_or(rules.len(), |at| at + 1);
    rules.insert(pushed, Arc::new(JoinOrder));
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
        // Build sides are chosen with better estimates than operators have.
        config.options_mut().optimizer.join_reordering = false;
        // Keys of a join's small side that the scan of the other looks up one by one.
        config.options_mut().optimizer.hash_join_inlist_pushdown_max_distinct_values = 1_024;
    }
    config
}
