//! LATERAL `generate_series`: a join with a series whose bounds are columns of the left side becomes one
//! [`ProjectSet`].

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, Projection};

use super::project_set::{ProjectSet, SetColumn};

/// Returns a plan that repeats each row of `left` once per value of its series in `subquery`, and the subquery's output
/// expressions over that plan; `None` if the subquery is more than a series.
pub(crate) fn lower_lateral(
    left: &Arc<LogicalPlan>,
    subquery: &LogicalPlan,
) -> Result<Option<(LogicalPlan, Vec<Expr>)>> {
    let LogicalPlan::Projection(outputs) = subquery else { return Ok(None) };
    let LogicalPlan::Extension(extension) = outputs.input.as_ref() else { return Ok(None) };
    let Some(set) = extension.node.as_any().downcast_ref::<ProjectSet>() else { return Ok(None) };
    let LogicalPlan::Projection(args) = set.input.as_ref() else { return Ok(None) };
    let stands_alone = matches!(args.input.as_ref(), LogicalPlan::EmptyRelation(empty) if empty.produce_one_row);
    let is_plain = set.columns.iter().all(|column| !matches!(column, SetColumn::Input(_)))
        && outputs.expr.iter().all(|expr| !expr.contains_outer())
        && !args.expr.iter().chain(&outputs.expr).any(has_subquery);
    if !stands_alone || !is_plain {
        return Ok(None);
    }
    let kept: Vec<Expr> = left.schema().columns().into_iter().map(Expr::Column).collect();
    let mut exprs = kept.clone();
    for arg in &args.expr {
        let near = arg.clone().transform(|expr| match expr {
            Expr::OuterReferenceColumn(_, column) if left.schema().has_column(&column) => {
                Ok(Transformed::yes(Expr::Column(column)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        exprs.push(near.data);
    }
    let schema = Arc::new(left.schema().join(&set.schema)?);
    let input = Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(left))?));
    let columns = kept.into_iter().map(SetColumn::Input).chain(set.columns.iter().cloned()).collect();
    let node = ProjectSet { input, columns, schema };
    Ok(Some((LogicalPlan::Extension(Extension { node: Arc::new(node) }), outputs.expr.clone())))
}

fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| {
        matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
    };
    expr.exists(|expr| Ok(is_subquery(expr))).unwrap_or(true)
}
