//! Tracks, operator by operator, which task the rows of a plan are in.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::JoinType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::buffer::BufferExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, JoinOnRef};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use operators::portable_operator::PortableOperator;
use scan::{RowDistribution, ShardScanExec};
use types::ColumnId;

/// Location of rows among tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowLocation {
    /// Placed by exchanges between tasks. The plan's partitioning holds across all tasks.
    Exchanged,
    /// In the task that owns the bucket of their keys. Each key is the set of columns that hold its value. The plan's
    /// partitioning holds within a task only.
    InBuckets(Vec<KeyColumns>),
    /// Unknown. The plan's partitioning holds within a task only.
    Unknown,
}

/// Positions of the columns that hold the value of one bucket key.
pub(super) type KeyColumns = BTreeSet<usize>;

impl RowLocation {
    /// Returns the location of the rows of a scan.
    pub(super) fn from_scan(scan: &ShardScanExec) -> Self {
        let RowDistribution::ByBucket(keys) = scan.row_distribution() else { return Self::Exchanged };
        let columns = &scan.scan.columns;
        let holding = |id: ColumnId| (0..columns.len()).filter(|at| columns[*at].id == id).collect();
        Self::in_buckets(keys.columns().map(holding).collect())
    }

    /// Returns the location in buckets of these keys, or `Unknown` if a key has no column left.
    fn in_buckets(keys: Vec<KeyColumns>) -> Self {
        if keys.iter().any(BTreeSet::is_empty) { Self::Unknown } else { Self::InBuckets(keys) }
    }

    /// Returns whether all rows with equal values of these columns are in one task.
    pub(super) fn colocates(&self, columns: &[Arc<dyn PhysicalExpr>]) -> bool {
        let Self::InBuckets(keys) = self else { return false };
        let columns: BTreeSet<usize> = columns.iter().filter_map(column_index).collect();
        keys.iter().all(|key| !key.is_disjoint(&columns))
    }

    /// Returns whether all pairs of rows that join on `on` are in one task.
    pub(super) fn colocates_join(&self, other: &Self, on: JoinOnRef<'_>) -> bool {
        let (Self::InBuckets(left), Self::InBuckets(right)) = (self, other) else { return false };
        let pairs: Vec<_> =
            on.iter().filter_map(|(left, right)| Some((column_index(left)?, column_index(right)?))).collect();
        let are_equal = |(left, right): (&KeyColumns, &KeyColumns)| {
            pairs.iter().any(|(one, two)| left.contains(one) && right.contains(two))
        };
        left.len() == right.len() && left.iter().zip(right).all(are_equal)
    }

    /// Returns the location in buckets of these columns.
    pub(super) fn by_columns(columns: &[usize]) -> Self {
        Self::InBuckets(columns.iter().map(|column| KeyColumns::from([*column])).collect())
    }

    /// Returns the columns of the other join side that equal the bucket keys, in key order. `pairs` holds equal
    /// columns: one of these rows, one of the other side.
    pub(super) fn matching_columns(&self, pairs: &[(usize, usize)]) -> Option<Vec<usize>> {
        let Self::InBuckets(keys) = self else { return None };
        let equal = |key: &KeyColumns| pairs.iter().find(|(own, _)| key.contains(own)).map(|(_, other)| *other);
        keys.iter().map(equal).collect()
    }

    /// Maps the location through a projection: `columns` yields the input column of each output column.
    fn map_columns(&self, columns: impl Iterator<Item = Option<usize>>) -> Self {
        let Self::InBuckets(keys) = self else { return self.clone() };
        let mut found = vec![KeyColumns::new(); keys.len()];
        for (at, from) in columns.enumerate() {
            let Some(from) = from else { continue };
            keys.iter().zip(&mut found).filter(|(key, _)| key.contains(&from)).for_each(|(_, found)| {
                found.insert(at);
            });
        }
        Self::in_buckets(found)
    }
}

/// Returns the location of an operator's rows from those of its inputs. Partitioned hash joins and hash exchanges are
/// handled by the caller.
pub(super) fn operator_location(plan: &Arc<dyn ExecutionPlan>, inputs: &[RowLocation]) -> RowLocation {
    if plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>() {
        // All rows come to one task.
        return RowLocation::Exchanged;
    }
    if inputs.iter().all(|input| *input == RowLocation::Exchanged) {
        return RowLocation::Exchanged;
    }
    if plan.is::<UnionExec>() {
        return union_location(inputs);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return join_location(join, &RowLocation::Unknown, &inputs[1]);
    }
    let [input] = inputs else { return RowLocation::Unknown };
    if preserves_columns(plan) {
        return input.clone();
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return project_location(input, filter.projection().as_deref());
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = projection.input().schema();
        return input.map_columns(projection.expr().iter().map(|output| column_of_same_bucket(&output.expr, &below)));
    }
    match plan.downcast_ref::<AggregateExec>() {
        // With several grouping sets, a key may be NULL in the rows of another set.
        Some(aggregate) if aggregate.group_expr().is_single() => {
            input.map_columns(aggregate.group_expr().expr().iter().map(|(key, _)| column_index(key)))
        }
        _ => RowLocation::Unknown,
    }
}

/// Returns the location of the rows of a partitioned hash join whose sides met in their tasks, or of a join that one
/// side is broadcast to.
pub(super) fn join_location(join: &HashJoinExec, left: &RowLocation, right: &RowLocation) -> RowLocation {
    let width = join.left().schema().fields().len();
    let of_right = |at: &usize| at + width;
    let shifted = |key: &KeyColumns| key.iter().map(of_right).collect::<KeyColumns>();
    let all = match join.join_type() {
        // Columns of the other side are NULL in rows without a match.
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left.clone(),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right.clone(),
        JoinType::Right => match right {
            RowLocation::InBuckets(keys) => RowLocation::InBuckets(keys.iter().map(shifted).collect()),
            other => other.clone(),
        },
        JoinType::Inner => match (left, right) {
            (RowLocation::InBuckets(left), RowLocation::InBuckets(right)) => {
                RowLocation::InBuckets(left.iter().zip(right).map(|(left, right)| left | &shifted(right)).collect())
            }
            (RowLocation::InBuckets(_), _) => left.clone(),
            (_, RowLocation::InBuckets(keys)) => RowLocation::InBuckets(keys.iter().map(shifted).collect()),
            _ => RowLocation::Unknown,
        },
        JoinType::Full => RowLocation::Unknown,
    };
    let all = if all == RowLocation::Exchanged { RowLocation::Unknown } else { all };
    project_location(&all, join.projection.as_deref())
}

/// Maps a location through an optional projection of columns.
fn project_location(located: &RowLocation, columns: Option<&[usize]>) -> RowLocation {
    match columns {
        Some(columns) => located.map_columns(columns.iter().map(|from| Some(*from))),
        None => located.clone(),
    }
}

/// Returns the location of a union: buckets of the keys that all inputs have in the same columns.
fn union_location(inputs: &[RowLocation]) -> RowLocation {
    let mut keys: Option<Vec<KeyColumns>> = None;
    for input in inputs {
        let RowLocation::InBuckets(own) = input else { return RowLocation::Unknown };
        keys = Some(match keys {
            None => own.clone(),
            Some(keys) if keys.len() == own.len() => keys.iter().zip(own).map(|(one, other)| one & other).collect(),
            Some(_) => return RowLocation::Unknown,
        });
    }
    keys.map_or(RowLocation::Unknown, RowLocation::in_buckets)
}

/// Returns whether the first columns of an operator are those of its input and no row changes its task.
fn preserves_columns(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<SortExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<BufferExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<WindowAggExec>()
        || plan.is::<BoundedWindowAggExec>()
        || matches!(PortableOperator::try_from_operator(plan.as_ref()), Some(PortableOperator::RankLimit { .. }))
}

/// Returns the position of the column that an expression refers to, if it is a plain column.
pub(super) fn column_index(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

/// Returns the column of `below` whose bucket an expression preserves: a column itself, or a cast that widens an
/// integer or the scale of a numeric, which does not change the bucket.
fn column_of_same_bucket(expression: &Arc<dyn PhysicalExpr>, below: &Schema) -> Option<usize> {
    let Some(cast) = expression.downcast_ref::<CastExpr>() else { return column_index(expression) };
    let is_wider = match (cast.expr().data_type(below).ok()?, cast.cast_type()) {
        (DataType::Int16, DataType::Int32 | DataType::Int64) | (DataType::Int32, DataType::Int64) => true,
        (DataType::Decimal128(_, from), DataType::Decimal128(_, to)) => from <= *to,
        (from, to) => from == *to,
    };
    is_wider.then(|| cast.expr()).and_then(column_index)
}
