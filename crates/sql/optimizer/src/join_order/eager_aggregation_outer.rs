//! Eager aggregation below an outer join.
//!
//! `count(f.v)` of `d LEFT JOIN f ON d.k = f.k`, grouped by columns of `d`, is the sum of the counts of `f` per `k`, or
//! 0 where `f` has no row with that `k`. All rows of `d` with the same key join with the same group, so their number
//! does not matter. See Yan and Larson, "Eager aggregation and lazy aggregation", VLDB 1995.

use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Case};
use datafusion::logical_expr::{Aggregate, Expr, Join, LogicalPlan, Projection};

use super::eager_aggregation::{
    JOIN_PARTNER_SHARE_MIN, cast_to_original, decomposable_calls, final_calls, is_worthwhile, partial_names,
};
use crate::estimate::semi_join_selectivity;
use crate::estimate_relation;
use plan::StandardAggregate;

/// Rewrites an aggregate over an outer join to a partial aggregation of the nullable side below the join and a final
/// one above; `None` if that is impossible or not worth it.
pub(super) fn push_down_aggregate(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let Some((join, sides)) = outer_join(&aggregate.input) else { return Ok(None) };
    let is_kept = |column: &Column| sides.preserved.schema().has_column(column);
    let are_kept = |key: &Expr| {
        let is_plain = !matches!(key, Expr::GroupingSet(_)) && !key.is_volatile();
        is_plain && key.column_refs().into_iter().all(is_kept)
    };
    if aggregate.group_expr.is_empty() || !aggregate.group_expr.iter().all(are_kept) {
        return Ok(None);
    }
    let Some(calls) =
        decomposable_calls(aggregate).filter(|calls| calls.iter().all(|call| reads_column_of(call, sides.nullable)))
    else {
        return Ok(None);
    };
    let mut keys: Vec<Expr> = Vec::with_capacity(sides.on.len());
    for (_, key) in &sides.on {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    if !keys.iter().all(|key| matches!(key, Expr::Column(_))) || !is_side_worthwhile(&sides, &keys) {
        return Ok(None);
    }
    let names = partial_names(&calls, aggregate.input.schema());
    let partials = calls.iter().zip(&names).map(|(call, name)| Expr::AggregateFunction(call.clone()).alias(name));
    let below = Aggregate::try_new(Arc::new(sides.nullable.clone()), keys, partials.collect())?;
    let below = LogicalPlan::Aggregate(below);
    let Some(totals) = final_calls(&calls, &names, &below, &aggregate.schema)? else { return Ok(None) };
    let (left, right) = match join.join_type {
        JoinType::Left => (Arc::clone(&join.left), Arc::new(below)),
        _ => (Arc::new(below), Arc::clone(&join.right)),
    };
    let (on, constraint, equality) = (join.on.clone(), join.join_constraint, join.null_equality);
    let joined = Join::try_new(left, right, on, None, join.join_type, constraint, equality, join.null_aware)?;
    final_aggregate(aggregate, &calls, LogicalPlan::Join(joined), totals).map(Some)
}

/// Sides of an outer join and its keys.
struct OuterJoinSides<'a> {
    /// Preserved side, whose rows all come out.
    preserved: &'a LogicalPlan,
    /// Nullable side.
    nullable: &'a LogicalPlan,
    /// Equi-join keys; the preserved side's expression is first.
    on: Vec<(Expr, Expr)>,
}

/// Returns the left or right join at the top of `plan`, below projections of columns; `None` if it has conditions other
/// than keys.
fn outer_join(plan: &LogicalPlan) -> Option<(&Join, OuterJoinSides<'_>)> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let is_plain = projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_)));
            if is_plain { outer_join(&projection.input) } else { None }
        }
        LogicalPlan::Join(join) => {
            let is_plain = join.filter.is_none() && !join.on.is_empty();
            if !is_plain || join.null_equality != NullEquality::NullEqualsNothing {
                return None;
            }
            let on = join.on.iter().cloned();
            let sides = match join.join_type {
                JoinType::Left => OuterJoinSides { preserved: &join.left, nullable: &join.right, on: on.collect() },
                JoinType::Right => {
                    let on = on.map(|(left, right)| (right, left)).collect();
                    OuterJoinSides { preserved: &join.right, nullable: &join.left, on }
                }
                _ => return None,
            };
            Some((join, sides))
        }
        _ => None,
    }
}

/// Returns whether an aggregate's argument is a column of `side`, perhaps cast. Rows without a partner have NULL in it,
/// and do not contribute to the aggregate.
fn reads_column_of(call: &AggregateFunction, side: &LogicalPlan) -> bool {
    let [argument] = call.params.args.as_slice() else { return false };
    let mut read = argument;
    while let Expr::Cast(cast) = read {
        read = &cast.expr;
    }
    call.params.filter.is_none() && matches!(read, Expr::Column(column) if side.schema().has_column(column))
}

/// Returns whether there are few groups compared to rows, and enough rows find partners.
fn is_side_worthwhile(sides: &OuterJoinSides<'_>, keys: &[Expr]) -> bool {
    let relation = estimate_relation(sides.nullable);
    let facts: Vec<_> = keys.iter().map(|key| relation.expression_estimate(key, sides.nullable.schema())).collect();
    if !is_worthwhile(&facts, relation.rows) {
        return false;
    }
    let kept = estimate_relation(sides.preserved);
    let (own, other): (Vec<_>, Vec<_>) = sides.on.iter().cloned().unzip();
    let own: Vec<_> = own.iter().map(|key| kept.expression_estimate(key, sides.preserved.schema())).collect();
    let other: Vec<_> = other.iter().map(|key| relation.expression_estimate(key, sides.nullable.schema())).collect();
    JOIN_PARTNER_SHARE_MIN <= semi_join_selectivity(&other, &own)
}

/// Returns the final aggregation over the joined partial groups, with the column names of `aggregate`. Counts of groups
/// without partners become 0.
fn final_aggregate(
    aggregate: &Aggregate,
    calls: &[AggregateFunction],
    joined: LogicalPlan,
    totals: Vec<Expr>,
) -> Result<LogicalPlan> {
    let above = Aggregate::try_new(Arc::new(joined), aggregate.group_expr.clone(), totals)?;
    let count = aggregate.group_expr.len();
    let mut columns = Vec::with_capacity(aggregate.schema.fields().len());
    for (place, (column, (relation, field))) in
        above.schema.columns().into_iter().zip(aggregate.schema.iter()).enumerate()
    {
        let value = Expr::Column(column);
        let Some(call) = place.checked_sub(count).map(|place| &calls[place]) else {
            columns.push(value);
            continue;
        };
        let mut value = cast_to_original(value, above.schema.field(place), field);
        if StandardAggregate::from_function(&call.func) == Some(StandardAggregate::Count) {
            let nothing = Expr::Literal(ScalarValue::Int64(Some(0)), None);
            let none = (Box::new(Expr::IsNull(Box::new(value.clone()))), Box::new(nothing));
            value = Expr::Case(Case::new(None, vec![none], Some(Box::new(value))));
        }
        columns.push(value.alias_qualified(relation.cloned(), field.name()));
    }
    Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(above))).map(LogicalPlan::Projection)
}
