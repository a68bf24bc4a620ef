//! Expressions for people.

use std::sync::Arc;

use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

/// An expression as SQL.
pub(crate) fn sql(expr: &Arc<dyn PhysicalExpr>) -> String {
    datafusion::physical_expr_common::physical_expr::fmt_sql(expr.as_ref()).to_string()
}

/// `a DESC NULLS LAST`, leaving out what PostgreSQL takes for granted.
pub(crate) fn sort_key(key: &PhysicalSortExpr) -> String {
    let direction = if key.options.descending { " DESC" } else { "" };
    let nulls = match (key.options.descending, key.options.nulls_first) {
        (false, true) => " NULLS FIRST",
        (true, false) => " NULLS LAST",
        _ => "",
    };
    format!("{}{direction}{nulls}", sql(&key.expr))
}

/// The columns that an operator gives.
pub(crate) fn output(operator: &dyn ExecutionPlan) -> Vec<String> {
    match operator.downcast_ref::<ProjectionExec>() {
        Some(projection) => projection.expr().iter().map(|output| sql(&output.expr)).collect(),
        None => operator.schema().fields().iter().map(|field| field.name().clone()).collect(),
    }
}
