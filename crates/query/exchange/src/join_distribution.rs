//! Chooses between broadcast and shuffle for each join.

use std::collections::HashMap;
use std::sync::Arc;

use compile::OperatorId;
use compile::estimate::join_sizes;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{JoinType, Result as DfResult};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};
use operators::selects_joins;
use optimizer::RowEstimate;

use crate::avoid_exchanges::{is_colocated, stationary_sides};

/// Strategy for moving the rows of joins between workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JoinDistribution {
    /// Broadcast the build side where that is expected to move fewer bytes.
    #[default]
    ByCost,
    /// Shuffle both sides by the join keys, if there are any.
    Shuffle,
    /// Broadcast the build side, unless its unmatched rows are output.
    Broadcast,
}

/// Maximum size of a broadcast build side in bytes: each worker holds all of it.
const BROADCAST_BYTES_MAX: f64 = 256.0 * 1024.0 * 1024.0;

impl JoinDistribution {
    /// Returns the session state with this strategy, for a query on `workers` workers. `expected` holds the optimizer's
    /// estimates, if there are any.
    pub(super) fn configure(self, state: SessionState, expected: Option<RowEstimate>, workers: usize) -> SessionState {
        let mut config = state.config().clone();
        let most = if self == Self::Broadcast { usize::MAX } else { 0 };
        config.options_mut().optimizer.hash_join_single_partition_threshold = most;
        config.options_mut().optimizer.hash_join_single_partition_threshold_rows = most;
        let mut rules = state.physical_optimizers().to_vec();
        if self == Self::ByCost {
            let after = rules.iter().position(|rule| selects_joins(rule.as_ref())).map_or(0, |before| before + 1);
            rules.insert(after, Arc::new(JoinDistributionRule { expected, workers }));
        }
        let builder = SessionStateBuilder::new_from_existing(state);
        builder.with_config(config).with_physical_optimizer_rules(rules).build()
    }
}

/// Optimizer rule that broadcasts a build side where that moves fewer bytes than a shuffle of both sides, unless the
/// sides need not move at all.
#[derive(Debug)]
struct JoinDistributionRule {
    expected: Option<RowEstimate>,
    workers: usize,
}

impl PhysicalOptimizerRule for JoinDistributionRule {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.choose_exchanges(&plan, &join_sizes(self.expected.as_ref(), &plan))
    }

    fn name(&self) -> &'static str {
        "join_exchange"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl JoinDistributionRule {
    /// Rewrites joins bottom-up: whether a join's rows meet without moving depends on the joins below it.
    fn choose_exchanges(&self, plan: &Arc<dyn ExecutionPlan>, sizes: &Sizes) -> DfResult<Arc<dyn ExecutionPlan>> {
        let inputs = plan
            .children()
            .into_iter()
            .map(|input| self.choose_exchanges(input, sizes))
            .collect::<DfResult<Vec<_>>>()?;
        let size = sizes.get(&OperatorId::new(plan.as_ref()));
        let plan = replace_children_if_necessary(Arc::clone(plan), inputs)?;
        match (plan.downcast_ref::<HashJoinExec>(), size) {
            (Some(join), Some((build, probe)))
                if *join.partition_mode() == PartitionMode::Partitioned
                    && is_broadcast_cheaper(*build, *probe, self.workers)
                    && !outputs_unmatched_build(*join.join_type())
                    && !is_colocated(join)?
                    && beats_stationary_side(*build, *probe, self.workers, stationary_sides(join)?) =>
            {
                join.builder().with_partition_mode(PartitionMode::CollectLeft).build_exec()
            }
            _ => Ok(plan),
        }
    }
}

/// Bytes of the build side and the probe side of joins.
type Sizes = HashMap<OperatorId, (f64, f64)>;

/// Returns whether a broadcast of `build` bytes moves less than a shuffle of `build` and `probe`. A shuffle leaves each
/// worker its own share.
#[expect(clippy::cast_precision_loss, reason = "there are few workers")]
fn is_broadcast_cheaper(build: f64, probe: f64, workers: usize) -> bool {
    build <= BROADCAST_BYTES_MAX && build * workers as f64 <= build + probe
}

/// Returns whether a broadcast of `build` bytes moves less than the one side that a shuffle moves where the other may
/// stay in its buckets.
#[expect(clippy::cast_precision_loss, reason = "there are few workers")]
fn beats_stationary_side(build: f64, probe: f64, workers: usize, (build_stays, probe_stays): (bool, bool)) -> bool {
    // Each worker also builds a hash table of all of it, which costs about as much as moving it.
    !probe_stays && (!build_stays || 2.0 * build * workers as f64 <= probe)
}

/// Returns whether unmatched rows of the build side are output: with a broadcast each worker would output them.
fn outputs_unmatched_build(join: JoinType) -> bool {
    !matches!(join, JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark)
}

#[cfg(test)]
mod tests {
    use super::{beats_stationary_side, is_broadcast_cheaper};

    #[test]
    fn no_side_goes_to_all_where_it_could_go_to_one_that_stays() {
        assert!(beats_stationary_side(1e6, 1e9, 4, (false, false)));
        assert!(!beats_stationary_side(1.0, 1e9, 4, (false, true)));
        assert!(beats_stationary_side(1e6, 8e6, 4, (true, false)));
        assert!(!beats_stationary_side(1e6, 7.9e6, 4, (true, false)));
    }

    #[test]
    fn the_side_that_goes_to_all_is_small_beside_the_other_and_by_itself() {
        assert!(is_broadcast_cheaper(1e6, 1e9, 4));
        assert!(is_broadcast_cheaper(1e6, 3e6, 4));
        assert!(!is_broadcast_cheaper(1e6, 2.9e6, 4));
        assert!(!is_broadcast_cheaper(1e9, 1e12, 4));
        assert!(is_broadcast_cheaper(0.0, 0.0, 64));
    }
}
