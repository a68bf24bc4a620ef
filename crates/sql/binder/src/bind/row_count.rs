//! LIMIT and OFFSET: counts that are more than a number or a parameter are computed while the query is planned, those that a
//! subquery gives when it runs.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{EmptyRelation, Expr, Limit, LogicalPlan, Projection};
use functions::cast::{CastKind, lower as lower_cast};
use functions::error::{from_datafusion, to_datafusion};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::{Binder, expression, query};
use crate::semantics::typed::type_of;
use crate::settled;

/// The plan with a number or a parameter in every LIMIT and OFFSET.
pub(super) fn settle(binder: &Binder<'_>, plan: LogicalPlan) -> SqlResult<LogicalPlan> {
    if !has_unsettled(&plan).map_err(from_datafusion)? {
        return Ok(plan);
    }
    let settled = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Limit(Limit { skip, fetch, input }) => {
            let skip = count(binder, skip, "OFFSET", Condition::InvalidRowCountInOffset).map_err(to_datafusion)?;
            let fetch = count(binder, fetch, "LIMIT", Condition::InvalidRowCountInLimit).map_err(to_datafusion)?;
            Ok(Transformed::yes(LogicalPlan::Limit(Limit { skip, fetch, input })))
        }
        other => Ok(Transformed::no(other)),
    });
    settled.map(|settled| settled.data).map_err(from_datafusion)
}

/// Whether a count is more than a number or a parameter.
fn has_unsettled(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            found |= limit.skip.iter().chain(&limit.fetch).any(|count| !is_settled(count));
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn is_settled(count: &Expr) -> bool {
    matches!(count, Expr::Literal(ScalarValue::Int64(Some(0..)), _) | Expr::Placeholder(_))
}

fn count(
    binder: &Binder<'_>,
    expr: Option<Box<Expr>>,
    clause: &str,
    negative: Condition,
) -> SqlResult<Option<Box<Expr>>> {
    let Some(expr) = expr else { return Ok(None) };
    if is_settled(&expr) {
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
        return Err(SqlError::internal("a count's plan is a projection"));
    };
    let expr = plan.expr.into_iter().next().map(Expr::unalias);
    let expr = expr.ok_or_else(|| SqlError::internal("a count was lost"))?;
    let sql_type = type_of(&expr, plan.input.schema().as_ref()).map_err(from_datafusion)?;
    let cast = lower_cast(expr, &sql_type, &SqlType::Int8, CastKind::Assignment, binder.session());
    let cast = cast.map_err(from_datafusion)?;
    if is_asked {
        // The query's to answer when it runs: [`asked`].
        return Ok(Some(Box::new(cast)));
    }
    if cast.exists(|part| Ok(!settled::is_settled(part))).map_err(from_datafusion)? {
        binder.session().note_read_now();
    }
    let value = expression::evaluate(binder, cast)?;
    let value = value.as_primitive::<Int64Type>();
    let count = (!value.is_null(0)).then(|| value.value(0));
    literal(count, clause, negative).map(|count| count.map(Box::new))
}

/// A count as the plan has it; NULL is no count at all.
fn literal(count: Option<i64>, clause: &str, negative: Condition) -> SqlResult<Option<Expr>> {
    match count {
        None => Ok(None),
        Some(count @ 0..) => Ok(Some(Expr::Literal(ScalarValue::Int64(Some(count)), None))),
        Some(_) => Err(SqlError::new(negative, format!("{clause} must not be negative"))),
    }
}

/// The plan with every count that a subquery gives as the number that `answer` finds it to be.
pub(crate) async fn ask<F>(mut plan: LogicalPlan, answer: impl Fn(Expr) -> F) -> SqlResult<LogicalPlan>
where
    F: Future<Output = SqlResult<Option<i64>>>,
{
    while let Some((count, is_offset)) = asked(&plan)? {
        let value = answer(count.clone()).await?;
        let (clause, negative) = if is_offset {
            ("OFFSET", Condition::InvalidRowCountInOffset)
        } else {
            ("LIMIT", Condition::InvalidRowCountInLimit)
        };
        let value = literal(value, clause, negative)?.map(Box::new);
        let answered = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Limit(Limit { skip, fetch, input }) => {
                let put =
                    |place: Option<Box<Expr>>| if place.as_deref() == Some(&count) { value.clone() } else { place };
                let (skip, fetch) = if is_offset { (put(skip), fetch) } else { (skip, put(fetch)) };
                Ok(Transformed::yes(LogicalPlan::Limit(Limit { skip, fetch, input })))
            }
            other => Ok(Transformed::no(other)),
        });
        plan = answered.map_err(from_datafusion)?.data;
    }
    Ok(plan)
}

/// A count that is to be asked for, and whether it is an OFFSET.
fn asked(plan: &LogicalPlan) -> SqlResult<Option<(Expr, bool)>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for (count, is_offset) in [(&limit.skip, true), (&limit.fetch, false)] {
                if let Some(count) = count
                    && !matches!(count.as_ref(), Expr::Literal(..) | Expr::Placeholder(_))
                {
                    found = Some((count.as_ref().clone(), is_offset));
                    return Ok(TreeNodeRecursion::Stop);
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    Ok(found)
}
