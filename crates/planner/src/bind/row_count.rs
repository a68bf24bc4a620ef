//! LIMIT and OFFSET: counts that are more than a number or a parameter are computed while the query is planned.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{EmptyRelation, Expr, Limit, LogicalPlan, Projection};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::{Binder, expression, query};
use crate::error::{from_datafusion, to_datafusion};
use crate::functions::cast::CastKind;
use crate::semantics::cast::lower as lower_cast;
use crate::semantics::typed::type_of;

/// The plan with a number or a parameter in every LIMIT and OFFSET.
pub(super) fn settle(binder: &Binder<'_>, plan: LogicalPlan) -> SqlResult<LogicalPlan> {
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

fn count(
    binder: &Binder<'_>,
    expr: Option<Box<Expr>>,
    clause: &str,
    negative: Condition,
) -> SqlResult<Option<Box<Expr>>> {
    let Some(expr) = expr else { return Ok(None) };
    match expr.as_ref() {
        Expr::Literal(ScalarValue::Int64(Some(0..)), _) | Expr::Placeholder(_) => return Ok(Some(expr)),
        _ => {}
    }
    let asks = |expr: &Expr| matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
    if expr.exists(|expr| Ok(asks(expr))).map_err(from_datafusion)? {
        return Err(SqlError::unsupported(format_args!("a subquery in {clause}")));
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
    let value = expression::evaluate(binder, cast.map_err(from_datafusion)?)?;
    let value = value.as_primitive::<Int64Type>();
    if arrow::array::Array::is_null(value, 0) {
        return Ok(None);
    }
    match value.value(0) {
        count @ 0.. => Ok(Some(Box::new(Expr::Literal(ScalarValue::Int64(Some(count)), None)))),
        _ => Err(SqlError::new(negative, format!("{clause} must not be negative"))),
    }
}
