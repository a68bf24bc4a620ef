//! Eager aggregation: aggregates one input before the joins if many of its rows have the same keys.
//!
//! `sum(f.v)` of `f JOIN d ON f.k = d.k`, grouped by a column of `d`, is the sum of the sums of `f` per `k`. All rows
//! of a lower group join with the same rows of the other inputs, so the number of these does not matter. See Yan and
//! Larson, "Eager aggregation and lazy aggregation", VLDB 1995.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Cast};
use datafusion::logical_expr::{Aggregate, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection};
use functions::may_fail;
use plan::estimate::ColumnEstimate;
use plan::unique_name;

use super::graph::{Condition, JoinGraph, Leaf};
use super::join_cardinality::SizeEstimates;
use super::leaf_set::LeafSet;
use super::{build_plan, join_tree_search};
use crate::estimate::group_count;
use crate::estimate_relation;

/// Least number of rows of the input.
const ROWS_MIN: f64 = 100_000.0;
/// Least average number of rows per lower group.
const ROWS_PER_GROUP_MIN: f64 = 8.0;
/// Least share of rows that find partners: if fewer do, the join should discard the others before aggregation.
pub(super) const JOIN_PARTNER_SHARE_MIN: f64 = 0.5;

/// Rewrites an aggregate over inner joins to a partial aggregation of one input below the joins and a final one above;
/// `None` if that is impossible or not worth it.
pub(super) fn push_down_aggregate(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let is_set_or_chance = |key: &Expr| matches!(key, Expr::GroupingSet(_)) || key.is_volatile();
    if aggregate.group_expr.is_empty() || aggregate.group_expr.iter().any(is_set_or_chance) {
        return Ok(None);
    }
    let Some(calls) = decomposable_calls(aggregate) else { return Ok(None) };
    let Some(mut graph) = JoinGraph::try_from_plan(&aggregate.input) else { return Ok(None) };
    if graph.leaves.iter().any(|leaf| leaf.attachment.is_some()) {
        return Ok(None);
    }
    let Some(leaf) = aggregated_leaf(&graph, &calls) else { return Ok(None) };
    let Some(keys) = partial_keys(&graph, leaf, &aggregate.group_expr) else { return Ok(None) };
    let below = build_plan::leaf_plan(&graph, leaf);
    if !is_leaf_worthwhile(&graph, &below, &keys) {
        return Ok(None);
    }
    let names = partial_names(&calls, aggregate.input.schema());
    let partials = calls.iter().zip(&names).map(|(call, name)| Expr::AggregateFunction(call.clone()).alias(name));
    let keys = keys.into_iter().map(Expr::Column).collect();
    let below = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(below), keys, partials.collect())?);
    let Some(totals) = final_calls(&calls, &names, &below, &aggregate.schema)? else { return Ok(None) };
    graph.leaves[leaf] = Leaf { plan: Arc::new(below), attachment: None };
    graph.conditions.retain(|condition| condition.leaves != LeafSet::from_leaf(leaf));
    graph.original_tree = None;
    let joined =
        build_plan::joined_plan(&graph, &join_tree_search::find_cheapest(&graph, &SizeEstimates::new(&graph)))?;
    final_aggregate(aggregate, joined, totals).map(Some)
}

/// Returns the final aggregation over the joined partial groups, with the column names of `aggregate`.
fn final_aggregate(aggregate: &Aggregate, joined: LogicalPlan, totals: Vec<Expr>) -> Result<LogicalPlan> {
    let above = Aggregate::try_new(Arc::new(joined), aggregate.group_expr.clone(), totals)?;
    let count = aggregate.group_expr.len();
    let mut columns = Vec::with_capacity(aggregate.schema.fields().len());
    for (place, (column, (relation, field))) in
        above.schema.columns().into_iter().zip(aggregate.schema.iter()).enumerate()
    {
        let value = Expr::Column(column);
        columns.push(if place < count {
            value
        } else {
            cast_to_original(value, above.schema.field(place), field).alias_qualified(relation.cloned(), field.name())
        });
    }
    Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(above))).map(LogicalPlan::Projection)
}

/// Casts the value of a final aggregate from the type `now` to the original aggregate's type.
pub(super) fn cast_to_original(value: Expr, now: &Field, before: &Field) -> Expr {
    if now.data_type() == before.data_type() && now.metadata() == before.metadata() {
        return value;
    }
    let field = Field::new("cast", before.data_type().clone(), true).with_metadata(before.metadata().clone());
    Expr::Cast(Cast::new_from_field(Box::new(value), Arc::new(field)))
}

/// Returns column names for partial aggregates, as EXPLAIN shows them: unique, and not among those of `schema`.
pub(super) fn partial_names(calls: &[AggregateFunction], schema: &DFSchema) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(calls.len());
    for call in calls {
        let name = format!("partial {}", Expr::AggregateFunction(call.clone()).schema_name());
        let is_taken =
            |name: &str| names.iter().any(|known| known == name) || schema.has_column_with_unqualified_name(name);
        let name = unique_name(&name, is_taken);
        names.push(name);
    }
    names
}

/// Returns the aggregate's calls if all of them can be computed from partial aggregates, which may include rows that
/// find no partner.
pub(super) fn decomposable_calls(aggregate: &Aggregate) -> Option<Vec<AggregateFunction>> {
    let call = |expr: &Expr| match expr.clone().unalias() {
        Expr::AggregateFunction(call) => {
            let params = &call.params;
            let is_plain = !params.distinct && params.order_by.is_empty() && params.null_treatment.is_none();
            // DataFusion's own `sum` is decomposed like Kiln's.
            let is_known = matches!(call.func.name(), "sum" | "min" | "max" | "count");
            let are_total = params.args.iter().chain(params.filter.as_deref()).all(is_early);
            (is_plain && is_known && are_total).then_some(call)
        }
        _ => None,
    };
    aggregate.aggr_expr.iter().map(call).collect()
}

/// Returns whether an expression may be computed for rows that find no partner: it cannot fail, and it has no calls,
/// whose cost would be in vain.
fn is_early(expr: &Expr) -> bool {
    let has_calls = expr.exists(|expr| {
        Ok(match expr {
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::Between(_)
            | Expr::InList(_)
            | Expr::Cast(_)
            | Expr::Case(_) => false,
            Expr::BinaryExpr(BinaryExpr { op, .. }) => !matches!(
                op,
                Operator::And
                    | Operator::Or
                    | Operator::Eq
                    | Operator::NotEq
                    | Operator::Lt
                    | Operator::LtEq
                    | Operator::Gt
                    | Operator::GtEq
            ),
            _ => true,
        })
    });
    !has_calls.unwrap_or(true) && !may_fail(expr).unwrap_or(true)
}

/// Returns the final aggregates over partial ones, under names that `schema` does not have; `None` if a sum's result
/// depends on the order of its addends.
pub(super) fn final_calls(
    calls: &[AggregateFunction],
    names: &[String],
    below: &LogicalPlan,
    schema: &DFSchema,
) -> Result<Option<Vec<Expr>>> {
    let mut totals = Vec::with_capacity(calls.len());
    for (number, (call, name)) in calls.iter().zip(names).enumerate() {
        let part = Expr::Column(Column::new_unqualified(name));
        let is_exact = matches!(part.get_type(below.schema().as_ref())?, DataType::Int64 | DataType::Decimal128(..));
        let function = match call.func.name() {
            "sum" if !is_exact => return Ok(None),
            "count" => functions::aggregate("sum"),
            _ => Some(Arc::clone(&call.func)),
        };
        let Some(function) = function else { return Ok(None) };
        let total = AggregateFunction::new_udf(function, vec![part], false, None, Vec::new(), None);
        let name = unique_name(&format!("total_{number}"), |name| schema.has_column_with_unqualified_name(name));
        totals.push(Expr::AggregateFunction(total).alias(name));
    }
    Ok(Some(totals))
}

/// Returns the only leaf whose columns the aggregates read; the largest leaf if they read none.
fn aggregated_leaf(graph: &JoinGraph, calls: &[AggregateFunction]) -> Option<usize> {
    let mut read = HashSet::new();
    for call in calls {
        for column in call.params.args.iter().chain(call.params.filter.as_deref()).flat_map(Expr::column_refs) {
            read.insert(graph.leaves.iter().position(|leaf| leaf.plan.schema().has_column(column))?);
        }
    }
    match read.len() {
        0 => {
            let rows = |leaf| (leaf, estimate_relation(&build_plan::leaf_plan(graph, leaf)).rows.max(1.0));
            (0..graph.leaves.len()).map(rows).max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(leaf, _)| leaf)
        }
        1 => read.into_iter().next(),
        _ => None,
    }
}

/// Returns the columns of the leaf that joins and group keys read; `None` if a join reads more than columns.
fn partial_keys(graph: &JoinGraph, leaf: usize, group_keys: &[Expr]) -> Option<Vec<Column>> {
    let mut keys: Vec<Column> = Vec::new();
    for (_, expr) in graph.classes.iter().flat_map(|class| &class.members).filter(|(of, _)| *of == leaf) {
        let Expr::Column(column) = expr else { return None };
        keys.push(column.clone());
    }
    let is_of_others = |condition: &Condition| condition.leaves.contains_leaf(leaf) && 1 < condition.leaves.count();
    if keys.is_empty() || graph.conditions.iter().any(is_of_others) {
        return None;
    }
    let schema = graph.leaves[leaf].plan.schema();
    keys.extend(group_keys.iter().flat_map(Expr::column_refs).filter(|column| schema.has_column(column)).cloned());
    let mut seen = HashSet::new();
    keys.retain(|key| seen.insert(key.clone()));
    Some(keys)
}

/// Returns whether an input of so many rows is large enough, and has few enough groups by these keys.
pub(super) fn is_worthwhile(keys: &[ColumnEstimate], rows: f64) -> bool {
    ROWS_MIN <= rows && group_count(keys, rows) * ROWS_PER_GROUP_MIN <= rows
}

/// Returns whether eager aggregation of a leaf is worth it.
fn is_leaf_worthwhile(graph: &JoinGraph, below: &LogicalPlan, keys: &[Column]) -> bool {
    let relation = estimate_relation(below);
    let facts: Vec<_> =
        keys.iter().map(|key| relation.expression_estimate(&Expr::Column(key.clone()), below.schema())).collect();
    // The most expensive check comes last.
    is_worthwhile(&facts, relation.rows)
        && relation.rows * JOIN_PARTNER_SHARE_MIN <= SizeEstimates::new(graph).rows(LeafSet::first(graph.leaves.len()))
}
