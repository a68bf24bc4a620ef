//! Groups made before a join, where many rows of one input have the same keys: `sum(f.v)` of `f JOIN d ON f.k = d.k`, grouped by a column of
//! `d`, is the sum of the sums that `f` has of each `k`.
//!
//! All rows of a group below meet the same rows of the other inputs, so it does not matter how many these are. See Yan and Larson, "Eager
//! aggregation and lazy aggregation", VLDB 1995.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Cast};
use datafusion::logical_expr::{Aggregate, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection};
use functions::cast::is_native;
use plan::estimate::ColumnFacts;
use types::SqlType;

use super::graph::{Condition, Graph, Leaf};
use super::leaf_set::LeafSet;
use super::sizes::Sizes;
use super::{build, search};
use crate::estimate::groups;
use crate::relation_of;

/// Inputs with fewer rows are not worth it.
const ROWS_MIN: f64 = 100_000.0;
/// Rows of a group below the join, on average at least.
const ROWS_OF_GROUP_MIN: f64 = 8.0;
/// The part of the rows that find partners, at least: where most find none, they are better left out first.
pub(super) const JOINED_MIN: f64 = 0.5;

/// The same groups, of groups that are made before the joins; `None` where that is not possible or not worth it.
pub(super) fn aggregated(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let is_set_or_chance = |key: &Expr| matches!(key, Expr::GroupingSet(_)) || key.is_volatile();
    if aggregate.group_expr.is_empty() || aggregate.group_expr.iter().any(is_set_or_chance) {
        return Ok(None);
    }
    let Some(calls) = calls(aggregate) else { return Ok(None) };
    let Some(mut graph) = Graph::of(&aggregate.input) else { return Ok(None) };
    if graph.leaves.iter().any(|leaf| leaf.attachment.is_some()) {
        return Ok(None);
    }
    let Some(leaf) = totalled(&graph, &calls) else { return Ok(None) };
    let Some(keys) = keys(&graph, leaf, &aggregate.group_expr) else { return Ok(None) };
    let below = build::leaf(&graph, leaf);
    if !pays(&graph, &below, &keys) {
        return Ok(None);
    }
    let names = names(&calls);
    let partials = calls.iter().zip(&names).map(|(call, name)| Expr::AggregateFunction(call.clone()).alias(name));
    let keys = keys.into_iter().map(Expr::Column).collect();
    let below = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(below), keys, partials.collect())?);
    let Some(totals) = totals(&calls, &names, &below)? else { return Ok(None) };
    graph.leaves[leaf] = Leaf { plan: Arc::new(below), attachment: None };
    graph.conditions.retain(|condition| condition.leaves != LeafSet::one(leaf));
    graph.written = None;
    let joined = build::joined(&graph, &search::cheapest(&graph, &Sizes::of(&graph)))?;
    above(aggregate, joined, totals).map(Some)
}

/// The groups of joined groups, under the names that the aggregate has for its columns.
fn above(aggregate: &Aggregate, joined: LogicalPlan, totals: Vec<Expr>) -> Result<LogicalPlan> {
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
            as_before(value, above.schema.field(place), field).alias_qualified(relation.cloned(), field.name())
        });
    }
    Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(above))).map(LogicalPlan::Projection)
}

/// A sum of sums in the type of the sum.
pub(super) fn as_before(value: Expr, now: &Field, before: &Field) -> Expr {
    if now.data_type() == before.data_type() && now.metadata() == before.metadata() {
        return value;
    }
    let field = Field::new("cast", before.data_type().clone(), true).with_metadata(before.metadata().clone());
    Expr::Cast(Cast::new_from_field(Box::new(value), Arc::new(field)))
}

/// What partial aggregates are called: as EXPLAIN is to show them, each by a name of its own.
pub(super) fn names(calls: &[AggregateFunction]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(calls.len());
    for call in calls {
        let mut name = format!("partial {}", Expr::AggregateFunction(call.clone()).schema_name());
        while names.contains(&name) {
            name.push('\u{1}');
        }
        names.push(name);
    }
    names
}

/// The aggregates, if each can be made of those of parts, also of rows that find no partners.
pub(super) fn calls(aggregate: &Aggregate) -> Option<Vec<AggregateFunction>> {
    let schema = aggregate.input.schema();
    let call = |expr: &Expr| match expr.clone().unalias() {
        Expr::AggregateFunction(call) => {
            let params = &call.params;
            let is_plain = !params.distinct && params.order_by.is_empty() && params.null_treatment.is_none();
            let is_known = matches!(call.func.name(), "sum" | "min" | "max" | "count");
            let are_total = params.args.iter().chain(params.filter.as_deref()).all(|expr| is_total(expr, schema));
            (is_plain && is_known && are_total).then_some(call)
        }
        _ => None,
    };
    aggregate.aggr_expr.iter().map(call).collect()
}

/// Whether an expression has a value for whatever row: of arithmetic it may be out of range, and nobody has asked for it where the row finds
/// no partner.
fn is_total(expr: &Expr, schema: &DFSchema) -> bool {
    let may_fail = expr.exists(|expr| {
        Ok(match expr {
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::Between(_)
            | Expr::InList(_)
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
            Expr::Cast(Cast { expr, field: to }) => {
                let (_, from) = expr.to_field(schema)?;
                let types = SqlType::from_arrow_field(&from).zip(SqlType::from_arrow_field(to));
                !types.is_some_and(|(from, to)| is_native(&from, &to))
            }
            _ => true,
        })
    });
    !may_fail.unwrap_or(true)
}

/// The aggregates of partial ones; `None` where sums would depend on the order of their parts.
pub(super) fn totals(calls: &[AggregateFunction], names: &[String], below: &LogicalPlan) -> Result<Option<Vec<Expr>>> {
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
        totals.push(Expr::AggregateFunction(total).alias(format!("total\u{1}{number}")));
    }
    Ok(Some(totals))
}

/// The input whose columns alone the aggregates read: the largest, where they read none.
fn totalled(graph: &Graph, calls: &[AggregateFunction]) -> Option<usize> {
    let mut read = HashSet::new();
    for call in calls {
        for column in call.params.args.iter().chain(call.params.filter.as_deref()).flat_map(Expr::column_refs) {
            read.insert(graph.leaves.iter().position(|leaf| leaf.plan.schema().has_column(column))?);
        }
    }
    match read.len() {
        0 => {
            let rows = |leaf| (leaf, relation_of(&build::leaf(graph, leaf)).rows.max(1.0));
            (0..graph.leaves.len()).map(rows).max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(leaf, _)| leaf)
        }
        1 => read.into_iter().next(),
        _ => None,
    }
}

/// The columns of the leaf that joins and the groups' keys read; `None` where a join reads more than columns.
fn keys(graph: &Graph, leaf: usize, group_keys: &[Expr]) -> Option<Vec<Column>> {
    let mut keys: Vec<Column> = Vec::new();
    for (_, expr) in graph.classes.iter().flat_map(|class| &class.members).filter(|(of, _)| *of == leaf) {
        let Expr::Column(column) = expr else { return None };
        keys.push(column.clone());
    }
    let is_of_others = |condition: &Condition| condition.leaves.has(leaf) && 1 < condition.leaves.count();
    if keys.is_empty() || graph.conditions.iter().any(is_of_others) {
        return None;
    }
    let schema = graph.leaves[leaf].plan.schema();
    keys.extend(group_keys.iter().flat_map(Expr::column_refs).filter(|column| schema.has_column(column)).cloned());
    let mut seen = HashSet::new();
    keys.retain(|key| seen.insert(key.clone()));
    Some(keys)
}

/// Whether so many rows are enough to be worth groups, and these few by keys of which that is known.
pub(super) fn is_worth(keys: &[ColumnFacts], rows: f64) -> bool {
    ROWS_MIN <= rows && groups(keys, rows) * ROWS_OF_GROUP_MIN <= rows
}

fn pays(graph: &Graph, below: &LogicalPlan, keys: &[Column]) -> bool {
    let relation = relation_of(below);
    let facts: Vec<_> = keys.iter().map(|key| relation.facts(&Expr::Column(key.clone()), below.schema())).collect();
    // What takes longest to find out last.
    is_worth(&facts, relation.rows)
        && relation.rows * JOINED_MIN <= Sizes::of(graph).rows(LeafSet::first(graph.leaves.len()))
}
