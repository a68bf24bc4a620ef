//! IN with three-valued logic: under NOT, IS NULL, OR with NOT IN, and wherever else NULL differs from false, so that a
//! semi-join is not enough.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, Result as DfResult, ScalarValue};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit, when};

use super::replace_by_calls::has_subquery_in;

/// Lowers a filter's condition, operand by operand of its ANDs and ORs. The flag passed to `lower` says whether NULL
/// must be told from false in that operand.
pub(super) fn lower_condition(
    condition: Expr,
    is_conjunct: bool,
    lower: &impl Fn(Expr, bool) -> DfResult<Transformed<Expr>>,
) -> DfResult<Transformed<Expr>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let is_conjunct = is_conjunct && op == Operator::And;
            let left = lower_condition(*left, is_conjunct, lower)?;
            let right = lower_condition(*right, is_conjunct, lower)?;
            let transformed = left.transformed || right.transformed;
            let both = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Ok(Transformed::new(Expr::BinaryExpr(both), transformed, TreeNodeRecursion::Continue))
        }
        condition => {
            let exact = !can_be_join(&condition, is_conjunct)?;
            lower(condition, exact)
        }
    }
}

/// Returns whether a semi, anti or mark join can decide this part of a filter.
fn can_be_join(part: &Expr, is_conjunct: bool) -> DfResult<bool> {
    let (within, negated) = match part {
        Expr::InSubquery(within) => (within, within.negated),
        Expr::Not(inner) => match inner.as_ref() {
            Expr::InSubquery(within) if !within.negated => (within, true),
            _ => return Ok(false),
        },
        _ => return Ok(false),
    };
    // A join whose key reads no column would become a filter, which takes NULL for false.
    let is_about_rows = !within.expr.column_refs().is_empty();
    Ok(!has_subquery_in(&within.expr)? && (!negated || (is_conjunct && is_about_rows)))
}

/// Returns IN as a CASE over uncorrelated subqueries that gives true, false or NULL; `None` if the subquery cannot be
/// read several times.
pub(super) fn three_valued_in(within: &InSubquery) -> DfResult<Option<Expr>> {
    let value = within.expr.as_ref();
    let rows = &within.subquery.subquery;
    if value.is_volatile() || value.contains_outer() || has_subquery_in(value)? || is_volatile(rows)? {
        return Ok(None);
    }
    let found = InSubquery { negated: false, ..within.clone() };
    let element = Expr::Column(Column::from(rows.schema().qualified_field(0)));
    let nulls = LogicalPlanBuilder::from(Arc::clone(rows)).filter(element.is_null())?;
    let any = LogicalPlanBuilder::from(Arc::clone(rows));
    let unknown = lit(ScalarValue::Boolean(None));
    let answer = when(Expr::InSubquery(found), lit(true))
        .when(is_not_empty(nulls)?, unknown.clone())
        .when(value.clone().is_null().and(is_not_empty(any)?), unknown)
        .otherwise(lit(false))?;
    Ok(Some(if within.negated { Expr::Not(Box::new(answer)) } else { answer }))
}

fn is_not_empty(rows: LogicalPlanBuilder) -> DfResult<Expr> {
    let counted = rows.limit(0, Some(1))?.aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64))])?.build()?;
    let subquery = Subquery {
        subquery: Arc::new(counted),
        outer_ref_columns: Vec::new(),
        spans: datafusion::common::Spans::new(),
    };
    Ok(Expr::ScalarSubquery(subquery).gt(lit(0_i64)))
}

fn is_volatile(plan: &LogicalPlan) -> DfResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= node.expressions().iter().any(Expr::is_volatile);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
