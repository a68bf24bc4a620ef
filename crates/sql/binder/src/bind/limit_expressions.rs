//! LIMIT and OFFSET: expressions other than a number or a parameter are evaluated while the query is planned, and
//! those with subqueries when it runs.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{EmptyRelation, Expr, Limit, LogicalPlan, Projection};
use functions::cast::{CastKind, lower_cast};
use functions::error::{from_datafusion, to_datafusion};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::{Binder, limit_subqueries, query, standalone_expression};
use crate::semantics::expr_type::type_of;
use crate::value_lifetime;

/// Evaluates every LIMIT and OFFSET to a number or a parameter.
pub(super) fn evaluate_counts(binder: &Binder<'_>, plan: LogicalPlan) -> SqlResult<LogicalPlan> {
    if !has_expressions(&plan).map_err(from_datafusion)? {
        return Ok(plan);
    }
    let settled = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Limit(Limit { skip, fetch, input }) => {
            let skip =
                evaluate_count(binder, skip, "OFFSET", Condition::InvalidRowCountInOffset).map_err(to_datafusion)?;
            let fetch =
                evaluate_count(binder, fetch, "LIMIT", Condition::InvalidRowCountInLimit).map_err(to_datafusion)?;
            Ok(Transformed::yes(LogicalPlan::Limit(Limit { skip, fetch, input })))
        }
        other => Ok(Transformed::no(other)),
    });
    settled.map(|settled| settled.data).map_err(from_datafusion)
}

/// Returns whether a count is neither a number nor a parameter.
fn has_expressions(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            found |= limit.skip.iter().chain(&limit.fetch).any(|count| !is_number_or_parameter(count));
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_number_or_parameter(count: &Expr) -> bool {
    matches!(count, Expr::Literal(ScalarValue::Int64(Some(0..)), _) | Expr::Placeholder(_))
}

fn evaluate_count(
    binder: &Binder<'_>,
    expr: Option<Box<Expr>>,
    clause: &str,
    negative: Condition,
) -> SqlResult<Option<Box<Expr>>> {
    let Some(expr) = expr else { return Ok(None) };
    if is_number_or_parameter(&expr) {
        return Ok(Some(expr));
    }
    let asks = |expr: &Expr| matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
    let is_asked = expr.exists(|expr| Ok(asks(expr))).map_err(from_datafusion)?;
    if is_asked && expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_)))).map_err(from_datafusion)? {
        return Err(SqlError::unsupported(format_args!("a parameter beside a subquery in {clause}")));
    }
    let empty = Arc::new(DFSchema::empty());
    let input = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema: empty });
    let plan = Projection::try_new(vec![expr.alias("count")], Arc::new(input)).map_err(from_datafusion)?;
    let LogicalPlan::Projection(plan) = query::analyze(binder, LogicalPlan::Projection(plan))? else {
        return Err(SqlError::internal("the analyzed LIMIT or OFFSET expression is not a projection"));
    };
    let expr = plan.expr.into_iter().next().map(Expr::unalias);
    let expr = expr.ok_or_else(|| SqlError::internal("the analyzed LIMIT or OFFSET expression is missing"))?;
    let sql_type = type_of(&expr, plan.input.schema().as_ref()).map_err(from_datafusion)?;
    let cast = lower_cast(expr, &sql_type, &SqlType::Int8, CastKind::Assignment, binder.session());
    let cast = cast.map_err(from_datafusion)?;
    if is_asked {
        // The subquery is evaluated when the query runs.
        return Ok(Some(Box::new(cast)));
    }
    if cast.exists(|part| Ok(!value_lifetime::is_fixed_at_planning(part))).map_err(from_datafusion)? {
        binder.session().mark_time_dependent();
    }
    let value = standalone_expression::evaluate(binder, cast)?;
    let value = value.as_primitive::<Int64Type>();
    let count = (!value.is_null(0)).then(|| value.value(0));
    limit_subqueries::count_literal(count, clause, negative).map(|count| count.map(Box::new))
}
