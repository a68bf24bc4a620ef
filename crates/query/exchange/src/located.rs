//! What is known of the tasks that rows of a plan are in, operator by operator.

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
use operators::portable::OwnOperator;
use scan::{Lies, ShardScanExec};
use types::ColumnId;

/// Where rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Located {
    /// Wherever exchanges between tasks have put them. What the plan says of its partitions is so among all tasks.
    Anywhere,
    /// In the task that owns the bucket of their keys: of each key all columns that hold it. What the plan says of its partitions is so within a task.
    InBuckets(Vec<Key>),
    /// Nobody knows, and what the plan says of its partitions is so within a task only.
    Apart,
}

/// The columns that hold a key, by their positions.
pub(super) type Key = BTreeSet<usize>;

impl Located {
    /// Of a scan.
    pub(super) fn of_scan(scan: &ShardScanExec) -> Self {
        let Lies::InBuckets(keys) = scan.lies() else { return Self::Anywhere };
        let columns = &scan.scan.columns;
        let holding = |id: ColumnId| (0..columns.len()).filter(|at| columns[*at].id == id).collect();
        Self::in_buckets(keys.columns().map(holding).collect())
    }

    /// In buckets of these keys, if there is a column of each.
    fn in_buckets(keys: Vec<Key>) -> Self {
        if keys.iter().any(BTreeSet::is_empty) { Self::Apart } else { Self::InBuckets(keys) }
    }

    /// Whether all rows with the same values of these columns are in one task.
    pub(super) fn is_within(&self, columns: &[Arc<dyn PhysicalExpr>]) -> bool {
        let Self::InBuckets(keys) = self else { return false };
        let columns: BTreeSet<usize> = columns.iter().filter_map(position).collect();
        keys.iter().all(|key| !key.is_disjoint(&columns))
    }

    /// Whether rows of both that are joined are in one task.
    pub(super) fn meets(&self, other: &Self, on: JoinOnRef<'_>) -> bool {
        let (Self::InBuckets(left), Self::InBuckets(right)) = (self, other) else { return false };
        let pairs: Vec<_> = on.iter().filter_map(|(left, right)| Some((position(left)?, position(right)?))).collect();
        let are_equal =
            |(left, right): (&Key, &Key)| pairs.iter().any(|(one, two)| left.contains(one) && right.contains(two));
        left.len() == right.len() && left.iter().zip(right).all(are_equal)
    }

    /// In buckets of these columns.
    pub(super) fn by(columns: &[usize]) -> Self {
        Self::InBuckets(columns.iter().map(|column| Key::from([*column])).collect())
    }

    /// Of pairs of columns, one of these rows and one of others that equals it, those of the others that equal the keys, in their order.
    pub(super) fn leading(&self, pairs: &[(usize, usize)]) -> Option<Vec<usize>> {
        let Self::InBuckets(keys) = self else { return None };
        let equal = |key: &Key| pairs.iter().find(|(own, _)| key.contains(own)).map(|(_, other)| *other);
        keys.iter().map(equal).collect()
    }

    /// The same for other columns: where each of theirs comes from.
    fn through(&self, columns: impl Iterator<Item = Option<usize>>) -> Self {
        let Self::InBuckets(keys) = self else { return self.clone() };
        let mut found = vec![Key::new(); keys.len()];
        for (at, from) in columns.enumerate() {
            let Some(from) = from else { continue };
            keys.iter().zip(&mut found).filter(|(key, _)| key.contains(&from)).for_each(|(_, found)| {
                found.insert(at);
            });
        }
        Self::in_buckets(found)
    }
}

/// Where the rows of an operator are whose inputs' rows are there. Joins by keys and exchanges by keys are for others.
pub(super) fn above(plan: &Arc<dyn ExecutionPlan>, inputs: &[Located]) -> Located {
    if plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>() {
        // They come to one task.
        return Located::Anywhere;
    }
    if inputs.iter().all(|input| *input == Located::Anywhere) {
        return Located::Anywhere;
    }
    if plan.is::<UnionExec>() {
        return appended(inputs);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return joined(join, &Located::Apart, &inputs[1]);
    }
    let [input] = inputs else { return Located::Apart };
    if keeps_columns(plan) {
        return input.clone();
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return projected(input, filter.projection().as_deref());
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = projection.input().schema();
        return input.through(projection.expr().iter().map(|output| same_key(&output.expr, &below)));
    }
    match plan.downcast_ref::<AggregateExec>() {
        // With several sets of keys some are NULL in the rows of others.
        Some(aggregate) if aggregate.group_expr().is_single() => {
            input.through(aggregate.group_expr().expr().iter().map(|(key, _)| position(key)))
        }
        _ => Located::Apart,
    }
}

/// Where the rows of a join by keys are whose sides' rows met in their tasks; of one that one side goes to, where those of the other side are.
pub(super) fn joined(join: &HashJoinExec, left: &Located, right: &Located) -> Located {
    let width = join.left().schema().fields().len();
    let of_right = |at: &usize| at + width;
    let shifted = |key: &Key| key.iter().map(of_right).collect::<Key>();
    let all = match join.join_type() {
        // Rows of the other side are NULL where there is no partner.
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left.clone(),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right.clone(),
        JoinType::Right => match right {
            Located::InBuckets(keys) => Located::InBuckets(keys.iter().map(shifted).collect()),
            other => other.clone(),
        },
        JoinType::Inner => match (left, right) {
            (Located::InBuckets(left), Located::InBuckets(right)) => {
                Located::InBuckets(left.iter().zip(right).map(|(left, right)| left | &shifted(right)).collect())
            }
            (Located::InBuckets(_), _) => left.clone(),
            (_, Located::InBuckets(keys)) => Located::InBuckets(keys.iter().map(shifted).collect()),
            _ => Located::Apart,
        },
        JoinType::Full => Located::Apart,
    };
    let all = if all == Located::Anywhere { Located::Apart } else { all };
    projected(&all, join.projection.as_deref())
}

fn projected(located: &Located, columns: Option<&[usize]>) -> Located {
    match columns {
        Some(columns) => located.through(columns.iter().map(|from| Some(*from))),
        None => located.clone(),
    }
}

/// Rows of several inputs are in the tasks of keys that all of them have in the same columns.
fn appended(inputs: &[Located]) -> Located {
    let mut keys: Option<Vec<Key>> = None;
    for input in inputs {
        let Located::InBuckets(own) = input else { return Located::Apart };
        keys = Some(match keys {
            None => own.clone(),
            Some(keys) if keys.len() == own.len() => keys.iter().zip(own).map(|(one, other)| one & other).collect(),
            Some(_) => return Located::Apart,
        });
    }
    keys.map_or(Located::Apart, Located::in_buckets)
}

/// Whether an operator's first columns are those of its input, and no row goes to another task.
fn keeps_columns(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<SortExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<BufferExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<WindowAggExec>()
        || plan.is::<BoundedWindowAggExec>()
        || matches!(OwnOperator::of(plan.as_ref()), Some(OwnOperator::RankLimit { .. }))
}

/// The column that an expression is.
pub(super) fn position(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

/// The column whose key an expression over the columns of `below` has as well: a whole number that is made wider stays in its bucket, and so does a numeric
/// that gets more digits behind the point.
fn same_key(expression: &Arc<dyn PhysicalExpr>, below: &Schema) -> Option<usize> {
    let Some(cast) = expression.downcast_ref::<CastExpr>() else { return position(expression) };
    let is_wider = match (cast.expr().data_type(below).ok()?, cast.cast_type()) {
        (DataType::Int16, DataType::Int32 | DataType::Int64) | (DataType::Int32, DataType::Int64) => true,
        (DataType::Decimal128(_, from), DataType::Decimal128(_, to)) => from <= *to,
        (from, to) => from == *to,
    };
    is_wider.then(|| cast.expr()).and_then(position)
}
