//! How the rows of joins meet: one side goes to all workers, or both go by their keys.

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
use optimizer::Expected;

use crate::in_place::{may_stay, meets_in_place};

/// Which of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JoinExchange {
    /// One side goes to all workers where that is expected to move fewer bytes.
    #[default]
    ByCost,
    /// Both go by their keys, where there are keys.
    Shuffle,
    /// One side goes to all, where no row of it may come out without a partner.
    Broadcast,
}

/// A build side of more bytes does not go to all workers, each of which would keep it.
const BROADCAST_BYTES_MAX: f64 = 256.0 * 1024.0 * 1024.0;

/// DataFusion's rule that says how joins meet where nobody has said it.
const BEFORE: &str = "join_selection";

impl JoinExchange {
    /// The state of a query whose joins meet so: among so many workers, with what the parts of its plan are expected to give where that is known.
    pub(super) fn configured(self, state: SessionState, expected: Option<Expected>, workers: usize) -> SessionState {
        let mut config = state.config().clone();
        let most = if self == Self::Broadcast { usize::MAX } else { 0 };
        config.options_mut().optimizer.hash_join_single_partition_threshold = most;
        config.options_mut().optimizer.hash_join_single_partition_threshold_rows = most;
        let mut rules = state.physical_optimizers().to_vec();
        if self == Self::ByCost {
            let after = rules.iter().position(|rule| rule.name() == BEFORE).map_or(0, |before| before + 1);
            rules.insert(after, Arc::new(ByCost { expected, workers }));
        }
        let builder = SessionStateBuilder::new_from_existing(state);
        builder.with_config(config).with_physical_optimizer_rules(rules).build()
    }
}

/// Has build sides go to all workers where that moves fewer bytes than both sides going by their keys, and where these move at all.
#[derive(Debug)]
struct ByCost {
    expected: Option<Expected>,
    workers: usize,
}

impl PhysicalOptimizerRule for ByCost {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.met(&plan, &join_sizes(self.expected.as_ref(), &plan))
    }

    fn name(&self) -> &'static str {
        "join_exchange"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl ByCost {
    /// From below: whether rows of a join meet where they are read depends on how joins below it meet.
    fn met(&self, plan: &Arc<dyn ExecutionPlan>, sizes: &Sizes) -> DfResult<Arc<dyn ExecutionPlan>> {
        let inputs = plan.children().into_iter().map(|input| self.met(input, sizes)).collect::<DfResult<Vec<_>>>()?;
        let size = sizes.get(&OperatorId::of(plan.as_ref()));
        let plan = replace_children_if_necessary(Arc::clone(plan), inputs)?;
        match (plan.downcast_ref::<HashJoinExec>(), size) {
            (Some(join), Some((build, probe)))
                if *join.partition_mode() == PartitionMode::Partitioned
                    && is_worth(*build, *probe, self.workers)
                    && !emits_build(*join.join_type())
                    && !meets_in_place(join)?
                    && is_less(*build, *probe, self.workers, may_stay(join)?) =>
            {
                join.builder().with_partition_mode(PartitionMode::CollectLeft).build_exec()
            }
            _ => Ok(plan),
        }
    }
}

/// Bytes of both sides of joins.
type Sizes = HashMap<OperatorId, (f64, f64)>;

/// Whether `build` bytes at each of the workers are less to move than `build` and `probe` by keys: of these a worker keeps its own part.
#[expect(clippy::cast_precision_loss, reason = "there are few workers")]
fn is_worth(build: f64, probe: f64, workers: usize) -> bool {
    build <= BROADCAST_BYTES_MAX && build * workers as f64 <= build + probe
}

/// Whether `build` bytes at each of the workers are less to move than what goes by its keys where the other side, build or probe, may stay.
#[expect(clippy::cast_precision_loss, reason = "there are few workers")]
fn is_less(build: f64, probe: f64, workers: usize, (build_stays, probe_stays): (bool, bool)) -> bool {
    // Each of the workers puts all of it into a table too, which costs about as much again.
    !probe_stays && (!build_stays || 2.0 * build * workers as f64 <= probe)
}

/// Whether rows of the build side come out without a partner: each worker would say so of all of them.
fn emits_build(join: JoinType) -> bool {
    !matches!(join, JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark)
}

#[cfg(test)]
mod tests {
    use super::{is_less, is_worth};

    #[test]
    fn no_side_goes_to_all_where_it_could_go_to_one_that_stays() {
        assert!(is_less(1e6, 1e9, 4, (false, false)));
        assert!(!is_less(1.0, 1e9, 4, (false, true)));
        assert!(is_less(1e6, 8e6, 4, (true, false)));
        assert!(!is_less(1e6, 7.9e6, 4, (true, false)));
    }

    #[test]
    fn the_side_that_goes_to_all_is_small_beside_the_other_and_by_itself() {
        assert!(is_worth(1e6, 1e9, 4));
        assert!(is_worth(1e6, 3e6, 4));
        assert!(!is_worth(1e6, 2.9e6, 4));
        assert!(!is_worth(1e9, 1e12, 4));
        assert!(is_worth(0.0, 0.0, 64));
    }
}
