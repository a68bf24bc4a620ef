//! Traces a column of a plan down to the scans that it comes from: finds the filters on it and pushes new ones down.

use std::sync::Arc;

use catalog::Distribution;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, JoinType, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::{Between, InList};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, Filter, LogicalPlan, Operator};
use plan::ShardTable;

use crate::common_subplans::SharedTable;

/// Returns the conditions that all rows of `plan` fulfil and that read this column only, normalized by [`normalize_condition`].
pub(super) fn conditions_on(plan: &LogicalPlan, column: &Column) -> Vec<Expr> {
    let mut conditions = match plan {
        LogicalPlan::Filter(filter) => normalized_conditions(split_conjunction(&filter.predicate), column),
        LogicalPlan::TableScan(scan) => normalized_conditions(scan.filters.iter().flat_map(split_conjunction), column),
        LogicalPlan::Union(union) => {
            let Some(place) = plan.schema().maybe_index_of_column(column) else { return Vec::new() };
            let of_input = |input: &Arc<LogicalPlan>| conditions_on(input, &input.schema().columns()[place]);
            let common = |a: Vec<Expr>, b: Vec<Expr>| a.into_iter().filter(|condition| b.contains(condition)).collect();
            return union.inputs.iter().map(of_input).reduce(common).unwrap_or_default();
        }
        _ => Vec::new(),
    };
    if let Some((input, column)) = input_column(plan, column) {
        for condition in conditions_on(plan.inputs()[input], &column) {
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
    }
    conditions
}

/// Returns whether a column is never NULL, by its table's declaration or its shards' statistics. The nullability in
/// schemas between is ignored: it claims that a scalar subquery over a NOT NULL column is never NULL, which is wrong if
/// the subquery has no row.
pub(super) fn is_never_null(plan: &LogicalPlan, column: &Column) -> bool {
    let LogicalPlan::TableScan(scan) = plan else {
        return input_column(plan, column).is_some_and(|(input, column)| is_never_null(plan.inputs()[input], &column));
    };
    let (Ok(provider), Some(place)) = (source_as_provider(&scan.source), plan.schema().maybe_index_of_column(column))
    else {
        return false;
    };
    let is_declared = !provider.is::<SharedTable>() && !plan.schema().field(place).is_nullable();
    let in_table = scan.projection.as_ref().map_or(Some(place), |projection| projection.get(place).copied());
    let is_so = |table: &ShardTable| in_table.is_some_and(|place| table.has_no_null(place));
    is_declared || provider.downcast_ref::<ShardTable>().is_some_and(is_so)
}

/// Returns whether a column is the only distribution key of its table.
pub(crate) fn is_distribution_key(plan: &LogicalPlan, column: &Column) -> bool {
    let LogicalPlan::TableScan(scan) = plan else {
        return input_column(plan, column)
            .is_some_and(|(input, column)| is_distribution_key(plan.inputs()[input], &column));
    };
    let (Ok(provider), Some(place)) = (source_as_provider(&scan.source), plan.schema().maybe_index_of_column(column))
    else {
        return false;
    };
    let Some(table) = provider.downcast_ref::<ShardTable>() else { return false };
    let in_table = scan.projection.as_ref().map_or(Some(place), |projection| projection.get(place).copied());
    let column = in_table.and_then(|place| table.table.columns.get(place));
    column.is_some_and(|column| table.table.distribution == Distribution::On(vec![column.id]))
}

/// Returns the conditions that read `column` only, normalized by [`normalize_condition`].
fn normalized_conditions<'a>(conditions: impl IntoIterator<Item = &'a Expr>, column: &Column) -> Vec<Expr> {
    conditions.into_iter().filter_map(|condition| normalize_condition(condition, column)).collect()
}

/// Adds `condition`, normalized by [`normalize_condition`], as a filter right above the scans that `column` comes from; `None` if
/// it cannot be pushed down that far.
pub(super) fn push_condition(plan: &LogicalPlan, column: &Column, condition: &Expr) -> Option<LogicalPlan> {
    let filtered = |input: &LogicalPlan, earlier: Option<&Expr>| {
        let predicate =
            conjunction(earlier.cloned().into_iter().chain([denormalize_condition(condition, column).ok()?]))?;
        Filter::try_new(predicate, Arc::new(input.clone())).ok().map(LogicalPlan::Filter)
    };
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            // A filter on a shared table would make its readers need different rows, so that they could not share it.
            (!provider.is::<SharedTable>()).then(|| filtered(plan, None))?
        }
        LogicalPlan::Filter(Filter { predicate, input, .. }) if matches!(input.as_ref(), LogicalPlan::TableScan(_)) => {
            push_condition(input, column, condition)?;
            filtered(input, Some(predicate))
        }
        LogicalPlan::Union(union) => {
            let place = plan.schema().maybe_index_of_column(column)?;
            let input = |input: &Arc<LogicalPlan>| push_condition(input, &input.schema().columns()[place], condition);
            let inputs = union.inputs.iter().map(input).collect::<Option<Vec<_>>>()?;
            plan.with_new_exprs(Vec::new(), inputs).ok()
        }
        _ => {
            let (place, column) = input_column(plan, column)?;
            let mut inputs: Vec<LogicalPlan> = plan.inputs().into_iter().cloned().collect();
            inputs[place] = push_condition(&inputs[place], &column, condition)?;
            plan.with_new_exprs(plan.expressions(), inputs).ok()
        }
    }
}

/// Returns the input that a column comes from, and its name there; `None` if a filter on the column cannot be moved
/// from above the plan to above that input.
fn input_column(plan: &LogicalPlan, column: &Column) -> Option<(usize, Column)> {
    let place = plan.schema().maybe_index_of_column(column)?;
    let as_column = |expr: &Expr| match expr.clone().unalias() {
        Expr::Column(column) => Some((0, column)),
        _ => None,
    };
    match plan {
        LogicalPlan::Filter(_) | LogicalPlan::Distinct(Distinct::All(_)) => Some((0, column.clone())),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => Some((0, column.clone())),
        LogicalPlan::SubqueryAlias(alias) => Some((0, alias.input.schema().columns()[place].clone())),
        LogicalPlan::Projection(projection) => as_column(&projection.expr[place]),
        LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.get(place)? {
            Expr::GroupingSet(_) => None,
            key => as_column(key),
        },
        LogicalPlan::Join(join) => {
            let side = usize::from(!join.left.schema().has_column(column));
            let keeps_rows = match join.join_type {
                JoinType::Inner => true,
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => side == 0,
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => side == 1,
                JoinType::Full | JoinType::LeftMark | JoinType::RightMark => false,
            };
            let is_there = plan.inputs()[side].schema().has_column(column);
            (keeps_rows && is_there).then(|| (side, column.clone()))
        }
        _ => None,
    }
}

/// Normalizes a condition: replaces its column by one without a relation, which is the only column in the result.
/// `None` unless it only compares `column` with literals and is not true for NULL.
pub(super) fn normalize_condition(condition: &Expr, column: &Column) -> Option<Expr> {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(it) if it == column);
    let is_literal = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if !value.is_null());
    let value = || Box::new(Expr::Column(Column::new_unqualified("value")));
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(normalize_condition(left, column)?.or(normalize_condition(right, column)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_ordering(*op) => {
            let (op, literal) = match (left.as_ref(), right.as_ref()) {
                (left, right) if is_column(left) && is_literal(right) => (*op, right),
                (left, right) if is_literal(left) && is_column(right) => (op.swap()?, left),
                _ => return None,
            };
            Some(Expr::BinaryExpr(BinaryExpr::new(value(), op, Box::new(literal.clone()))))
        }
        Expr::Between(Between { expr, negated: false, low, high })
            if is_column(expr) && is_literal(low) && is_literal(high) =>
        {
            Some(Expr::Between(Between::new(value(), false, low.clone(), high.clone())))
        }
        Expr::InList(InList { expr, list, negated: false }) if is_column(expr) && list.iter().all(is_literal) => {
            Some(Expr::InList(InList::new(value(), list.clone(), false)))
        }
        _ => None,
    }
}

fn is_ordering(op: Operator) -> bool {
    matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// Replaces the only column in a normalized condition by `column`.
fn denormalize_condition(condition: &Expr, column: &Column) -> Result<Expr> {
    let placed = condition.clone().transform(|expr| {
        Ok(match &expr {
            Expr::Column(_) => Transformed::yes(Expr::Column(column.clone())),
            _ => Transformed::no(expr),
        })
    });
    placed.data()
}
