//! Avoids exchanges between tasks for joins, aggregations and windows over tables distributed by the key.
//!
//! Hash exchanges bring rows with equal keys together. If these rows are in one task already, the exchange is replaced
//! by one between the threads of the task ([`LocalExchangeExec`]). Both sides of a join must be distributed into the same
//! buckets; otherwise both move. A replicated table (REPLICATE), of which each task can read all rows, joins any other
//! side where that is, unless unmatched rows of the replicated table are output: each task would output them. A side
//! that is distributed by the join keys stays, and the other side moves to the owners of its buckets (`bucket_owners.rs`).

use std::sync::Arc;

use datafusion::common::{JoinType, Result as DfResult};
use datafusion::physical_expr::{Distribution, PhysicalExpr};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, replace_children_if_necessary};
use scan::{RowDistribution, ShardScanExec};
use shards::is_hashable_arrow;

use crate::bucket_owners::BucketOwners;
use crate::local_exchange::LocalExchangeExec;
use crate::row_location::{RowLocation, column_index, join_location, operator_location};

/// Returns the plan with exchanges between tasks only where rows have to move; with `owners`, rows may move to the
/// owners of their buckets.
pub(super) fn avoid_exchanges(
    plan: &Arc<dyn ExecutionPlan>,
    owners: Option<&BucketOwners>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    Ok(match place_exchanges(plan, owners)? {
        Some((placed, _)) => placed,
        None => Arc::clone(plan),
    })
}

/// Returns whether both sides of a partitioned hash join, before exchanges are added, meet without moving.
pub(super) fn is_colocated(join: &HashJoinExec) -> DfResult<bool> {
    if join.null_aware {
        return Ok(false);
    }
    if replicated_side(join).is_some() {
        return Ok(true);
    }
    let (Some((_, left)), Some((_, right))) =
        (place_exchanges(join.left(), None)?, place_exchanges(join.right(), None)?)
    else {
        return Ok(false);
    };
    Ok(left.colocates_join(&right, join.on()))
}

/// Returns whether the left and the right side of a partitioned hash join, before exchanges are added, may stay while
/// the other side moves to it.
pub(super) fn stationary_sides(join: &HashJoinExec) -> DfResult<(bool, bool)> {
    let (Some((_, left)), Some((_, right))) =
        (place_exchanges(join.left(), None)?, place_exchanges(join.right(), None)?)
    else {
        return Ok((false, false));
    };
    let may = |side, at: &RowLocation| !join.null_aware && routing_columns(join, side, at).is_some();
    Ok((may(StationarySide::Left, &left), may(StationarySide::Right, &right)))
}

/// A plan and the location of its rows.
type LocatedPlan = (Arc<dyn ExecutionPlan>, RowLocation);

/// Rewrites a plan and returns the location of its rows; `None` if an exchange would be needed that loses a required
/// order.
fn place_exchanges(plan: &Arc<dyn ExecutionPlan>, owners: Option<&BucketOwners>) -> DfResult<Option<LocatedPlan>> {
    if let Some(scan) = plan.downcast_ref::<ShardScanExec>() {
        return Ok(Some((Arc::clone(plan), RowLocation::from_scan(scan))));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && *join.partition_mode() == PartitionMode::Partitioned
        && !join.null_aware
    {
        return place_join_exchanges(plan, join, owners);
    }
    let (mut inputs, mut located) = (Vec::new(), Vec::new());
    for input in plan.children() {
        let Some((input, at)) = place_exchanges(input, owners)? else { return Ok(None) };
        inputs.push(input);
        located.push(at);
    }
    if let Some((keys, partitions)) = hash_exchange(plan) {
        let (Some(input), Some(at)) = (inputs.pop(), located.pop()) else { return Ok(None) };
        if at.colocates(keys) {
            let within: Arc<dyn ExecutionPlan> =
                Arc::new(LocalExchangeExec::try_new(input, keys.to_vec(), partitions)?);
            return Ok(Some((within, at)));
        }
        return Ok(Some((replace_children_if_necessary(Arc::clone(plan), vec![input])?, RowLocation::Exchanged)));
    }
    let asked = plan.input_distribution_requirements().into_per_child();
    let orders = plan.required_input_ordering();
    for (at, asked) in asked.into_iter().enumerate() {
        let Distribution::KeyPartitioned(keys) = asked else { continue };
        if located[at] == RowLocation::Exchanged || located[at].colocates(&keys) {
            continue;
        }
        if orders.get(at).is_some_and(Option::is_some) {
            return Ok(None);
        }
        inputs[at] = exchange_between_tasks(&inputs[at], keys)?;
        located[at] = RowLocation::Exchanged;
    }
    let above = operator_location(plan, &located);
    Ok(Some((replace_children_if_necessary(Arc::clone(plan), inputs)?, above)))
}

/// Rewrites a partitioned hash join: neither side, one side or both sides move.
fn place_join_exchanges(
    plan: &Arc<dyn ExecutionPlan>,
    join: &HashJoinExec,
    owners: Option<&BucketOwners>,
) -> DfResult<Option<LocatedPlan>> {
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
    let over = |left, right| replace_children_if_necessary(Arc::clone(plan), vec![left, right]);
    match replicated_side(join) {
        Some(ReplicatedSide::Left(left)) => {
            let Some((right, at)) = place_within_tasks(join.right(), right_keys, owners)? else { return Ok(None) };
            return Ok(Some((over(left, right)?, join_location(join, &RowLocation::Unknown, &at))));
        }
        Some(ReplicatedSide::Right(right)) => {
            let Some((left, at)) = place_within_tasks(join.left(), left_keys, owners)? else { return Ok(None) };
            return Ok(Some((over(left, right)?, join_location(join, &at, &RowLocation::Unknown))));
        }
        None => {}
    }
    let (Some((left, left_at)), Some((right, right_at))) =
        (place_exchanges(join.left(), owners)?, place_exchanges(join.right(), owners)?)
    else {
        return Ok(None);
    };
    if left_at.colocates_join(&right_at, join.on()) {
        return Ok(Some((over(left, right)?, join_location(join, &left_at, &right_at))));
    }
    if let Some(owners) = owners {
        // The probe side is usually the larger one.
        if let (Some(keys), Some(left)) =
            (routing_columns(join, StationarySide::Right, &right_at), exchange_input(&left, owners))
        {
            let at = RowLocation::by_columns(&keys);
            let right = partition_within_tasks(right, right_keys)?;
            return Ok(Some((
                over(owners.route_to_owners(left, keys, left_keys)?, right)?,
                join_location(join, &at, &right_at),
            )));
        }
        if let (Some(keys), Some(right)) =
            (routing_columns(join, StationarySide::Left, &left_at), exchange_input(&right, owners))
        {
            let at = RowLocation::by_columns(&keys);
            let left = partition_within_tasks(left, left_keys)?;
            return Ok(Some((
                over(left, owners.route_to_owners(right, keys, right_keys)?)?,
                join_location(join, &left_at, &at),
            )));
        }
    }
    let left = if left_at == RowLocation::Exchanged { left } else { exchange_between_tasks(&left, left_keys)? };
    let right = if right_at == RowLocation::Exchanged { right } else { exchange_between_tasks(&right, right_keys)? };
    Ok(Some((over(left, right)?, RowLocation::Exchanged)))
}

/// Join side that stays in its buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StationarySide {
    Left,
    Right,
}

/// Returns the columns of the other side that equal the bucket keys of this one, in key order; `None` if they do not
/// cover the keys.
fn routing_columns(join: &HashJoinExec, stays: StationarySide, at: &RowLocation) -> Option<Vec<usize>> {
    let (own, other) = match stays {
        StationarySide::Left => (join.left().schema(), join.right().schema()),
        StationarySide::Right => (join.right().schema(), join.left().schema()),
    };
    let pairs = join.on().iter().filter_map(|(left, right)| {
        let (own_key, other_key) = if stays == StationarySide::Left { (left, right) } else { (right, left) };
        let (own_key, other_key) = (column_index(own_key)?, column_index(other_key)?);
        let form = own.field(own_key).data_type();
        (form == other.field(other_key).data_type() && is_hashable_arrow(form)).then_some((own_key, other_key))
    });
    at.matching_columns(&pairs.collect::<Vec<_>>())
}

/// Returns the input of a hash exchange at the top of a plan, if it has as many partitions as the tasks of `owners`.
fn exchange_input(plan: &Arc<dyn ExecutionPlan>, owners: &BucketOwners) -> Option<Arc<dyn ExecutionPlan>> {
    let is_exchange = hash_exchange(plan).is_some() || plan.is::<LocalExchangeExec>();
    let is_alike = plan.output_partitioning().partition_count() == owners.partitions();
    (is_exchange && is_alike).then(|| Arc::clone(plan.children()[0]))
}

/// Partitions the rows of a plan by `keys` among the threads of their task.
fn partition_within_tasks(
    plan: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    if plan.is::<LocalExchangeExec>() {
        return Ok(plan);
    }
    let partitions = plan.output_partitioning().partition_count();
    Ok(Arc::new(LocalExchangeExec::try_new(plan, keys, partitions)?))
}

/// Join side that each task reads completely, because it is replicated.
enum ReplicatedSide {
    Left(Arc<dyn ExecutionPlan>),
    Right(Arc<dyn ExecutionPlan>),
}

/// Returns the replicated side of a join, rewritten so that each task reads all of it; `None` if there is none or its
/// unmatched rows are output.
fn replicated_side(join: &HashJoinExec) -> Option<ReplicatedSide> {
    use JoinType as J;
    let gives_left = matches!(join.join_type(), J::Left | J::LeftSemi | J::LeftAnti | J::LeftMark | J::Full);
    let gives_right = matches!(join.join_type(), J::Right | J::RightSemi | J::RightAnti | J::RightMark | J::Full);
    let left = || if gives_left { None } else { replicate_scan(join.left()).map(ReplicatedSide::Left) };
    let right = || if gives_right { None } else { replicate_scan(join.right()).map(ReplicatedSide::Right) };
    left().or_else(right)
}

/// Rewrites a plan over one replicated table so that each task reads all of the table; `None` for other plans.
fn replicate_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    if let Some(scan) = plan.downcast_ref::<ShardScanExec>() {
        let is_everywhere = scan.row_distribution() == RowDistribution::Replicated && scan.fetch().is_none();
        return is_everywhere.then(|| Arc::new(scan.replicated_copy()) as _);
    }
    let [input] = plan.children()[..] else { return None };
    if let Some((keys, partitions)) = hash_exchange(plan) {
        let within = LocalExchangeExec::try_new(replicate_scan(input)?, keys.to_vec(), partitions).ok()?;
        return Some(Arc::new(within));
    }
    let keeps_rows = plan.is::<CooperativeExec>() || plan.is::<RepartitionExec>() || plan.is::<ProjectionExec>();
    let is_plain = keeps_rows || plan.downcast_ref::<FilterExec>().is_some_and(|filter| filter.fetch().is_none());
    if !is_plain {
        return None;
    }
    replace_children_if_necessary(Arc::clone(plan), vec![replicate_scan(input)?]).ok()
}

/// Returns the keys and the number of partitions of a hash exchange.
fn hash_exchange(plan: &Arc<dyn ExecutionPlan>) -> Option<(&[Arc<dyn PhysicalExpr>], usize)> {
    match plan.downcast_ref::<RepartitionExec>()?.partitioning() {
        Partitioning::Hash(keys, partitions) => Some((keys, *partitions)),
        _ => None,
    }
}

/// Partitions the rows of a plan by `keys` with an exchange between tasks.
fn exchange_between_tasks(
    plan: &Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    if let Some(within) = plan.downcast_ref::<LocalExchangeExec>() {
        return Ok(within.exchange());
    }
    let partitions = plan.output_partitioning().partition_count();
    Ok(Arc::new(RepartitionExec::try_new(Arc::clone(plan), Partitioning::Hash(keys, partitions))?))
}

/// Rewrites a join side and partitions its rows by `keys` among the threads of their task.
fn place_within_tasks(
    plan: &Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    owners: Option<&BucketOwners>,
) -> DfResult<Option<LocatedPlan>> {
    let partitions = plan.output_partitioning().partition_count();
    let input = if hash_exchange(plan).is_some() { plan.children()[0] } else { plan };
    let Some((input, at)) = place_exchanges(input, owners)? else { return Ok(None) };
    let within: Arc<dyn ExecutionPlan> = Arc::new(LocalExchangeExec::try_new(input, keys, partitions)?);
    Ok(Some((within, at)))
}
