//! Expressions and columns as text.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use functions::planned_lazy_case;

/// Formats an expression as SQL; a lazy CASE is shown without the functions that make it lazy.
pub(crate) fn sql(expr: &Arc<dyn PhysicalExpr>) -> String {
    let shown = Arc::clone(expr).transform_down(|part| {
        Ok(match planned_lazy_case(&part) {
            Some(case) => Transformed::yes(Arc::new(case) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(part),
        })
    });
    let shown = shown.map_or_else(|_| Arc::clone(expr), |shown| shown.data);
    fmt_sql(shown.as_ref()).to_string()
}

/// Formats a sort key like `a DESC NULLS LAST`, without PostgreSQL's defaults.
pub(crate) fn sort_key(key: &PhysicalSortExpr) -> String {
    let direction = if key.options.descending { " DESC" } else { "" };
    let nulls = match (key.options.descending, key.options.nulls_first) {
        (false, true) => " NULLS FIRST",
        (true, false) => " NULLS LAST",
        _ => "",
    };
    format!("{}{direction}{nulls}", sql(&key.expr))
}

/// Returns the output columns of an operator.
pub(crate) fn output(operator: &dyn ExecutionPlan) -> Vec<String> {
    match operator.downcast_ref::<ProjectionExec>() {
        Some(projection) => projection.expr().iter().map(|output| sql(&output.expr)).collect(),
        None => operator.schema().fields().iter().map(|field| field.name().clone()).collect(),
    }
}
