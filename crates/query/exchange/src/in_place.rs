//! Avoids exchanges between tasks for joins, aggregations and windows over tables distributed by the key.
//!
//! Hash exchanges bring rows with equal keys together. If these rows are in one task already, the exchange is replaced
//! by one between the threads of the task ([`WithinTasksExec`]). Both sides of a join must be distributed into the same
//! buckets; otherwise both move. A replicated table (REPLICATE), of which each task can read all rows, joins any other
//! side where that is, unless unmatched rows of the replicated table are output: each task would output them. A side
//! that is distributed by the join keys stays, and the other side moves to the owners of its buckets (`owners.rs`).

use std::sync::Arc;

use datafusion::common::{JoinType, Result as DfResult};
use datafusion::physical_expr::{Distribution, PhysicalExpr};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, replace_children_if_necessary};
use scan::{Lies, ShardScanExec};
use shards::has_buckets;

use crate::located::{Located, above, joined, position};
use crate::owners::Owners;
use crate::within::WithinTasksExec;

/// Returns the plan with exchanges between tasks only where rows have to move; with `owners`, rows may move to the
/// owners of their buckets.
pub(super) fn in_place(plan: &Arc<dyn ExecutionPlan>, owners: Option<&Owners>) -> DfResult<Arc<dyn ExecutionPlan>> {
    Ok(match placed(plan, owners)? {
        Some((placed, _)) => placed,
        None => Arc::clone(plan),
    })
}

/// Returns whether both sides of a partitioned hash join, before exchanges are added, meet without moving.
pub(super) fn meets_in_place(join: &HashJoinExec) -> DfResult<bool> {
    if join.null_aware {
        return Ok(false);
    }
    if all_of(join).is_some() {
        return Ok(true);
    }
    let (Some((_, left)), Some((_, right))) = (placed(join.left(), None)?, placed(join.right(), None)?) else {
        return Ok(false);
    };
    Ok(left.meets(&right, join.on()))
}

/// Returns whether the left and the right side of a partitioned hash join, before exchanges are added, may stay while
/// the other side moves to it.
pub(super) fn may_stay(join: &HashJoinExec) -> DfResult<(bool, bool)> {
    let (Some((_, left)), Some((_, right))) = (placed(join.left(), None)?, placed(join.right(), None)?) else {
        return Ok((false, false));
    };
    let may = |side, at: &Located| !join.null_aware && leading(join, side, at).is_some();
    Ok((may(Stays::Left, &left), may(Stays::Right, &right)))
}

/// A plan and the location of its rows.
type Placed = (Arc<dyn ExecutionPlan>, Located);

/// Rewrites a plan and returns the location of its rows; `None` if an exchange would be needed that loses a required
/// order.
fn placed(plan: &Arc<dyn ExecutionPlan>, owners: Option<&Owners>) -> DfResult<Option<Placed>> {
    if let Some(scan) = plan.downcast_ref::<ShardScanExec>() {
        return Ok(Some((Arc::clone(plan), Located::of_scan(scan))));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && *join.partition_mode() == PartitionMode::Partitioned
        && !join.null_aware
    {
        return placed_join(plan, join, owners);
    }
    let (mut inputs, mut located) = (Vec::new(), Vec::new());
    for input in plan.children() {
        let Some((input, at)) = placed(input, owners)? else { return Ok(None) };
        inputs.push(input);
        located.push(at);
    }
    if let Some((keys, partitions)) = exchange(plan) {
        let (Some(input), Some(at)) = (inputs.pop(), located.pop()) else { return Ok(None) };
        if at.is_within(keys) {
            let within: Arc<dyn ExecutionPlan> = Arc::new(WithinTasksExec::try_new(input, keys.to_vec(), partitions)?);
            return Ok(Some((within, at)));
        }
        return Ok(Some((replace_children_if_necessary(Arc::clone(plan), vec![input])?, Located::Anywhere)));
    }
    let asked = plan.input_distribution_requirements().into_per_child();
    let orders = plan.required_input_ordering();
    for (at, asked) in asked.into_iter().enumerate() {
        let Distribution::KeyPartitioned(keys) = asked else { continue };
        if located[at] == Located::Anywhere || located[at].is_within(&keys) {
            continue;
        }
        if orders.get(at).is_some_and(Option::is_some) {
            return Ok(None);
        }
        inputs[at] = between_tasks(&inputs[at], keys)?;
        located[at] = Located::Anywhere;
    }
    let above = above(plan, &located);
    Ok(Some((replace_children_if_necessary(Arc::clone(plan), inputs)?, above)))
}

/// Rewrites a partitioned hash join: neither side, one side or both sides move.
fn placed_join(
    plan: &Arc<dyn ExecutionPlan>,
    join: &HashJoinExec,
    owners: Option<&Owners>,
) -> DfResult<Option<Placed>> {
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
    let over = |left, right| replace_children_if_necessary(Arc::clone(plan), vec![left, right]);
    match all_of(join) {
        Some(AllOf::Left(left)) => {
            let Some((right, at)) = within_tasks(join.right(), right_keys, owners)? else { return Ok(None) };
            return Ok(Some((over(left, right)?, joined(join, &Located::Apart, &at))));
        }
        Some(AllOf::Right(right)) => {
            let Some((left, at)) = within_tasks(join.left(), left_keys, owners)? else { return Ok(None) };
            return Ok(Some((over(left, right)?, joined(join, &at, &Located::Apart))));
        }
        None => {}
    }
    let (Some((left, left_at)), Some((right, right_at))) =
        (placed(join.left(), owners)?, placed(join.right(), owners)?)
    else {
        return Ok(None);
    };
    if left_at.meets(&right_at, join.on()) {
        return Ok(Some((over(left, right)?, joined(join, &left_at, &right_at))));
    }
    if let Some(owners) = owners {
        // The probe side is usually the larger one.
        if let (Some(keys), Some(left)) = (leading(join, Stays::Right, &right_at), exchanged(&left, owners)) {
            let at = Located::by(&keys);
            let right = within(right, right_keys)?;
            return Ok(Some((over(owners.lead(left, keys, left_keys)?, right)?, joined(join, &at, &right_at))));
        }
        if let (Some(keys), Some(right)) = (leading(join, Stays::Left, &left_at), exchanged(&right, owners)) {
            let at = Located::by(&keys);
            let left = within(left, left_keys)?;
            return Ok(Some((over(left, owners.lead(right, keys, right_keys)?)?, joined(join, &left_at, &at))));
        }
    }
    let left = if left_at == Located::Anywhere { left } else { between_tasks(&left, left_keys)? };
    let right = if right_at == Located::Anywhere { right } else { between_tasks(&right, right_keys)? };
    Ok(Some((over(left, right)?, Located::Anywhere)))
}

/// Join side that stays in its buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stays {
    Left,
    Right,
}

/// Returns the columns of the other side that equal the bucket keys of this one, in key order; `None` if they do not
/// cover the keys.
fn leading(join: &HashJoinExec, stays: Stays, at: &Located) -> Option<Vec<usize>> {
    let (own, other) = match stays {
        Stays::Left => (join.left().schema(), join.right().schema()),
        Stays::Right => (join.right().schema(), join.left().schema()),
    };
    let pairs = join.on().iter().filter_map(|(left, right)| {
        let (own_key, other_key) = if stays == Stays::Left { (left, right) } else { (right, left) };
        let (own_key, other_key) = (position(own_key)?, position(other_key)?);
        let form = own.field(own_key).data_type();
        (form == other.field(other_key).data_type() && has_buckets(form)).then_some((own_key, other_key))
    });
    at.leading(&pairs.collect::<Vec<_>>())
}

/// Returns the input of a hash exchange at the top of a plan, if it has as many partitions as the tasks of `owners`.
fn exchanged(plan: &Arc<dyn ExecutionPlan>, owners: &Owners) -> Option<Arc<dyn ExecutionPlan>> {
    let is_exchange = exchange(plan).is_some() || plan.is::<WithinTasksExec>();
    let is_alike = plan.output_partitioning().partition_count() == owners.partitions();
    (is_exchange && is_alike).then(|| Arc::clone(plan.children()[0]))
}

/// Partitions the rows of a plan by `keys` among the threads of their task.
fn within(plan: Arc<dyn ExecutionPlan>, keys: Vec<Arc<dyn PhysicalExpr>>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if plan.is::<WithinTasksExec>() {
        return Ok(plan);
    }
    let partitions = plan.output_partitioning().partition_count();
    Ok(Arc::new(WithinTasksExec::try_new(plan, keys, partitions)?))
}

/// Join side that each task reads completely, because it is replicated.
enum AllOf {
    Left(Arc<dyn ExecutionPlan>),
    Right(Arc<dyn ExecutionPlan>),
}

/// Returns the replicated side of a join, rewritten so that each task reads all of it; `None` if there is none or its
/// unmatched rows are output.
fn all_of(join: &HashJoinExec) -> Option<AllOf> {
    use JoinType as J;
    let gives_left = matches!(join.join_type(), J::Left | J::LeftSemi | J::LeftAnti | J::LeftMark | J::Full);
    let gives_right = matches!(join.join_type(), J::Right | J::RightSemi | J::RightAnti | J::RightMark | J::Full);
    let left = || if gives_left { None } else { by_all(join.left()).map(AllOf::Left) };
    let right = || if gives_right { None } else { by_all(join.right()).map(AllOf::Right) };
    left().or_else(right)
}

/// Rewrites a plan over one replicated table so that each task reads all of the table; `None` for other plans.
fn by_all(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    if let Some(scan) = plan.downcast_ref::<ShardScanExec>() {
        let is_everywhere = scan.lies() == Lies::Everywhere && scan.fetch().is_none();
        return is_everywhere.then(|| Arc::new(scan.by_all()) as _);
    }
    let [input] = plan.children()[..] else { return None };
    if let Some((keys, partitions)) = exchange(plan) {
        let within = WithinTasksExec::try_new(by_all(input)?, keys.to_vec(), partitions).ok()?;
        return Some(Arc::new(within));
    }
    let keeps_rows = plan.is::<CooperativeExec>() || plan.is::<RepartitionExec>() || plan.is::<ProjectionExec>();
    let is_plain = keeps_rows || plan.downcast_ref::<FilterExec>().is_some_and(|filter| filter.fetch().is_none());
    if !is_plain {
        return None;
    }
    replace_children_if_necessary(Arc::clone(plan), vec![by_all(input)?]).ok()
}

/// Returns the keys and the number of partitions of a hash exchange.
fn exchange(plan: &Arc<dyn ExecutionPlan>) -> Option<(&[Arc<dyn PhysicalExpr>], usize)> {
    match plan.downcast_ref::<RepartitionExec>()?.partitioning() {
        Partitioning::Hash(keys, partitions) => Some((keys, *partitions)),
        _ => None,
    }
}

/// Partitions the rows of a plan by `keys` with an exchange between tasks.
fn between_tasks(plan: &Arc<dyn ExecutionPlan>, keys: Vec<Arc<dyn PhysicalExpr>>) -> DfResult<Arc<dyn ExecutionPlan>> {
    if let Some(within) = plan.downcast_ref::<WithinTasksExec>() {
        return Ok(within.exchange());
    }
    let partitions = plan.output_partitioning().partition_count();
    Ok(Arc::new(RepartitionExec::try_new(Arc::clone(plan), Partitioning::Hash(keys, partitions))?))
}

/// Rewrites a join side and partitions its rows by `keys` among the threads of their task.
fn within_tasks(
    plan: &Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    owners: Option<&Owners>,
) -> DfResult<Option<Placed>> {
    let partitions = plan.output_partitioning().partition_count();
    let input = if exchange(plan).is_some() { plan.children()[0] } else { plan };
    let Some((input, at)) = placed(input, owners)? else { return Ok(None) };
    let within: Arc<dyn ExecutionPlan> = Arc::new(WithinTasksExec::try_new(input, keys, partitions)?);
    Ok(Some((within, at)))
}
