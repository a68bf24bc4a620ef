//! Finds subqueries that DataFusion cannot decorrelate and replaces them by calls.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result as DfResult};
use datafusion::logical_expr::expr::{Exists, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_binary, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDF, Subquery};

use super::SubqueryContext;
use super::array_subquery::is_array_subquery;
use super::lateral::{lower_join, lower_pairwise_join};
use super::lift_calls::calls_subquery;
use super::outer_parameter::outer_references;
use super::subquery_function::{CorrelatedSubquery, SubqueryKind};
use super::three_valued_in::{lower_condition, three_valued_in};
use crate::subquery_checks::check_subquery;

/// Replaces every subquery of `plan` that has no join form by a call, inner ones first.
pub(super) fn lower_plan(plan: LogicalPlan, within: &SubqueryContext) -> DfResult<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| lower_node(node, within)).map(|lowered| lowered.data)
}

fn lower_node(node: LogicalPlan, within: &SubqueryContext) -> DfResult<Transformed<LogicalPlan>> {
    let node = match node {
        LogicalPlan::Join(join) => {
            let lowered = lower_join(join, within)?;
            if lowered.transformed {
                return Ok(lowered);
            }
            lowered.data
        }
        other => other,
    };
    if !has_subquery(&node)? {
        return Ok(Transformed::no(node));
    }
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    let outer = node.clone();
    let lowered = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let lower = |expr: Expr, exact| expr.transform_down(|expr| lower_expr(expr, exact, &outer, &schema, within));
        let lowered = match &outer {
            LogicalPlan::Filter(_) => lower_condition(expr, true, &lower)?,
            _ => lower(expr, false)?,
        };
        Ok(lowered.update_data(|expr| name.restore(expr)))
    })?;
    if !lowered.transformed {
        return Ok(lowered);
    }
    lowered.map_data(|node| match node {
        LogicalPlan::Join(join) => lower_pairwise_join(join, within),
        node => node.recompute_schema(),
    })
}

fn has_subquery(node: &LogicalPlan) -> DfResult<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= has_subquery_in(expr)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

pub(super) fn has_subquery_in(expr: &Expr) -> DfResult<bool> {
    expr.exists(|expr| Ok(subquery_of(expr).is_some()))
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(within) => Some(&within.subquery),
        _ => None,
    }
}

/// Returns the subquery of `ARRAY(subquery)`.
fn array_subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarFunction(call) if is_array_subquery(&call.func) => subquery_of(call.args.first()?),
        _ => None,
    }
}

/// Replaces an expression that is a subquery by a call if it has no join form. With `exact`, an IN must tell NULL from
/// false.
fn lower_expr(
    expr: Expr,
    exact: bool,
    node: &LogicalPlan,
    schema: &DFSchema,
    within: &SubqueryContext,
) -> DfResult<Transformed<Expr>> {
    let array = array_subquery_of(&expr);
    let Some(subquery) = array.or_else(|| subquery_of(&expr)) else { return Ok(Transformed::no(expr)) };
    let references = outer_references(&subquery.subquery)?;
    if exact && let Expr::InSubquery(within) = &expr {
        let joined = if references.is_empty() { three_valued_in(within)? } else { None };
        if let Some(joined) = joined {
            return Ok(Transformed::new(joined, true, TreeNodeRecursion::Jump));
        }
    } else if array.is_none() && can_decorrelate(&expr, subquery, &references, node, schema)? {
        return Ok(Transformed::no(expr));
    }
    let outer: Vec<Column> = references.iter().map(|(_, column)| column.clone()).collect();
    let mut arguments: Vec<Expr> = references
        .into_iter()
        .map(|(field, column)| {
            // A column of a query further out stays an outer reference: the query around this one supplies it.
            if schema.has_column(&column) { Expr::Column(column) } else { Expr::OuterReferenceColumn(field, column) }
        })
        .collect();
    let (question, negated, subquery) = match expr {
        Expr::ScalarFunction(_) => (SubqueryKind::Array, false, subquery.clone()),
        Expr::ScalarSubquery(subquery) => (SubqueryKind::Scalar, false, subquery),
        Expr::Exists(Exists { subquery, negated }) => (SubqueryKind::Exists, negated, subquery),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            arguments.push(*expr);
            (SubqueryKind::In, negated, subquery)
        }
        other => return Ok(Transformed::no(other)),
    };
    let function = ScalarUDF::from(CorrelatedSubquery::new(question, subquery.subquery, outer, within));
    let call = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), arguments));
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(call)) } else { call }))
}

/// Returns whether DataFusion's optimizer turns the subquery into an equivalent join.
fn can_decorrelate(
    expr: &Expr,
    subquery: &Subquery,
    references: &[(arrow::datatypes::FieldRef, Column)],
    node: &LogicalPlan,
    schema: &DFSchema,
) -> DfResult<bool> {
    if references.is_empty() {
        // An uncorrelated scalar subquery runs once beforehand; EXISTS and IN become joins, but only in filters.
        // A join would treat a NULL outer value as not contained in the subquery's values.
        let looks_for_outer = matches!(expr, Expr::InSubquery(within) if within.expr.contains_outer());
        let is_joined = matches!(node, LogicalPlan::Filter(_)) && !looks_for_outer;
        return Ok(matches!(expr, Expr::ScalarSubquery(_)) || is_joined);
    }
    let all_in_enclosing_query = references.iter().all(|(_, column)| schema.has_column(column));
    let all_declared = subquery.outer_ref_columns.len() == references.len();
    let has_supported_shape = match expr {
        Expr::ScalarSubquery(_) => {
            matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Projection(_))
                && is_ungrouped_aggregate(&subquery.subquery)
        }
        Expr::Exists(_) => matches!(node, LogicalPlan::Filter(_)),
        // As a join, a correlated NOT IN would ignore NULLs.
        Expr::InSubquery(within) => matches!(node, LogicalPlan::Filter(_)) && !within.negated,
        _ => false,
    };
    let is_aggregate = matches!(expr, Expr::ScalarSubquery(_)) || has_aggregate(&subquery.subquery)?;
    Ok(all_in_enclosing_query
        && all_declared
        && has_supported_shape
        && (!is_aggregate || is_correlated_by_equality(&subquery.subquery)?)
        && is_correlated_in_filters_only(&subquery.subquery)?
        && check_subquery(node, subquery, expr).is_ok())
}

/// Returns whether the subquery always gives exactly one row: an aggregate without GROUP BY, perhaps projected.
fn is_ungrouped_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_ungrouped_aggregate(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_ungrouped_aggregate(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

pub(super) fn has_aggregate(plan: &LogicalPlan) -> DfResult<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(_))))
}

/// Returns whether every condition on an outer column equates it with an inner column, which decorrelation can make a
/// group key.
pub(super) fn is_correlated_by_equality(plan: &LogicalPlan) -> DfResult<bool> {
    let mut equal = true;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Filter(filter) = node {
            equal &= split_conjunction(&filter.predicate)
                .into_iter()
                .filter(|condition| condition.contains_outer())
                .all(is_equality);
        }
        Ok(if equal { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(equal)
}

fn is_equality(condition: &Expr) -> bool {
    let is_column = |expr: &Expr| match expr {
        Expr::Cast(cast) => matches!(cast.expr.as_ref(), Expr::Column(_)),
        other => matches!(other, Expr::Column(_)),
    };
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            (is_column(left) && !right.any_column_refs()) || (is_column(right) && !left.any_column_refs())
        }
        // DataFusion factors out an equality that all branches of an OR share.
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
            let alternatives: Vec<Vec<&Expr>> =
                split_binary(condition, Operator::Or).into_iter().map(split_conjunction).collect();
            let is_shared = |condition: &Expr| alternatives.iter().all(|conditions| conditions.contains(&condition));
            alternatives
                .iter()
                .flatten()
                .filter(|condition| condition.contains_outer())
                .all(|condition| is_equality(condition) && is_shared(condition))
        }
        _ => false,
    }
}

/// Returns whether outer columns appear only in filters, in a plan without limits, windows, unions and other operators
/// that prevent decorrelation.
pub(super) fn is_correlated_in_filters_only(plan: &LogicalPlan) -> DfResult<bool> {
    let mut plain = true;
    plan.apply_with_subqueries(|node| {
        let allowed = match node {
            LogicalPlan::Filter(filter) => {
                let mut conditions = split_conjunction(&filter.predicate).into_iter();
                conditions.all(|condition| !condition.contains_outer() || can_be_join_condition(condition))
            }
            LogicalPlan::Limit(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::RecursiveQuery(_)
            | LogicalPlan::Unnest(_) => false,
            other => !reads_outer_columns(other)?,
        };
        plain &= allowed;
        Ok(if plain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(plain)
}

/// Returns whether a condition on outer columns can become a join condition: it reads inner columns too and has no
/// subquery.
fn can_be_join_condition(condition: &Expr) -> bool {
    let asks = has_subquery_in(condition).unwrap_or(true) || calls_subquery(condition);
    !asks && !condition.column_refs().is_empty()
}

fn reads_outer_columns(node: &LogicalPlan) -> DfResult<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.contains_outer();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
