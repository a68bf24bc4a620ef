//! LATERAL subqueries that cannot be decorrelated: their rows become a list per row of the left side, which is
//! unnested.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, NullHandling, Result as DfResult, ScalarValue, TableReference, UnnestOptions, internal_err,
};
use datafusion::functions::core::get_field;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Subquery, lit};
use functions::error::to_datafusion;
use plan::unique_name;
use types::SqlError;

use super::SubqueryContext;
use super::lift_calls::needs_row_pairs;
use super::outer_parameter::outer_references;
use super::replace_by_calls::{has_aggregate, is_correlated_by_equality, is_correlated_in_filters_only};
use super::subquery_function::{CorrelatedSubquery, SubqueryKind, field_name};
use crate::series;

/// Rewrites a join with a LATERAL subquery to an unnest of the subquery's rows, unless DataFusion can decorrelate it.
///
/// # Errors
/// `0A000` for join types and conditions that an unnest cannot express.
pub(super) fn lower_join(join: Join, within: &SubqueryContext) -> DfResult<Transformed<LogicalPlan>> {
    let Some((alias, subquery)) = lateral_subquery(&join.right) else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    if is_correlated_in_filters_only(&subquery.subquery)?
        && (!has_aggregate(&subquery.subquery)? || is_correlated_by_equality(&subquery.subquery)?)
    {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let condition =
        conjunction(join.on.iter().map(|(left, right)| left.clone().eq(right.clone())).chain(join.filter.clone()))
            .filter(|condition| *condition != lit(true));
    if join.join_type == JoinType::Inner
        && let Some((multiplied, values)) = series::lower_lateral(&join.left, &subquery.subquery)?
    {
        let left_columns = join.left.schema().columns().into_iter().map(Expr::Column);
        let named = values.into_iter().zip(subquery.subquery.schema().iter());
        let named = named.map(|(value, (qualifier, field))| {
            value.unalias().alias_qualified(alias.clone().or_else(|| qualifier.cloned()), field.name())
        });
        let plan = LogicalPlanBuilder::from(multiplied).project(left_columns.chain(named).collect::<Vec<_>>())?;
        let plan = match condition {
            Some(condition) => plan.filter(condition)?,
            None => plan,
        };
        return plan.build().map(Transformed::yes);
    }
    let null_handling = match (join.join_type, &condition) {
        (JoinType::Inner, _) => NullHandling::Drop,
        (JoinType::Left, None) => NullHandling::PreserveAndExpandEmpty,
        _ => {
            return Err(to_datafusion(SqlError::unsupported(
                "a LATERAL subquery in a RIGHT or FULL JOIN, or in a LEFT JOIN with a condition",
            )));
        }
    };
    let left = join.left.as_ref().clone();
    let unnested = unnest_subquery(left, &subquery.subquery, alias.as_ref(), null_handling, within)?;
    let filtered = match condition {
        Some(condition) => unnested.filter(condition)?,
        None => unnested,
    };
    filtered.build().map(Transformed::yes)
}

/// Returns the rows of `left`, each combined with every row that `plan` gives for it.
fn unnest_subquery(
    left: LogicalPlan,
    plan: &Arc<LogicalPlan>,
    alias: Option<&TableReference>,
    null_handling: NullHandling,
    within: &SubqueryContext,
) -> DfResult<LogicalPlanBuilder> {
    let references = outer_references(plan)?;
    let outer: Vec<Column> = references.iter().map(|(_, column)| column.clone()).collect();
    let arguments = references.into_iter().map(|(field, column)| {
        let is_near = left.schema().has_column(&column);
        if is_near { Expr::Column(column) } else { Expr::OuterReferenceColumn(field, column) }
    });
    let function = ScalarUDF::from(CorrelatedSubquery::new(SubqueryKind::Rows, Arc::clone(plan), outer, within));
    let call = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), arguments.collect()));
    let kept: Vec<Expr> = left.schema().columns().into_iter().map(Expr::Column).collect();
    let is_taken = |name: &str| left.schema().has_column_with_unqualified_name(name);
    let rows = Column::new_unqualified(unique_name("lateral_rows", is_taken));
    let fields = plan.schema().iter().enumerate().map(|(at, (qualifier, field))| {
        let row = Expr::Column(rows.clone());
        let name = lit(ScalarValue::Utf8(Some(field_name(at))));
        let value = Expr::ScalarFunction(ScalarFunction::new_udf(get_field(), vec![row, name]));
        value.alias_qualified(alias.or(qualifier).cloned(), field.name())
    });
    let outputs: Vec<Expr> = kept.iter().cloned().chain(fields).collect();
    LogicalPlanBuilder::from(left)
        .project(kept.into_iter().chain([call.alias(&rows.name)]))?
        .unnest_columns_with_options(vec![rows], UnnestOptions::new().with_null_handling(null_handling))?
        .project(outputs)
}

/// Rewrites an outer join whose condition has a subquery over both sides: for each row of the preserved side, the other
/// side filtered by the condition becomes a correlated subquery, whose rows are unnested.
///
/// # Errors
/// `0A000` for a FULL JOIN.
pub(super) fn lower_pairwise_join(join: Join, within: &SubqueryContext) -> DfResult<LogicalPlan> {
    let (left, right) = (join.left.schema(), join.right.schema());
    let conditions = join.filter.as_ref().map(split_conjunction).unwrap_or_default();
    let is_inner = join.join_type == JoinType::Inner;
    if is_inner || !conditions.into_iter().any(|condition| needs_row_pairs(condition, left, right)) {
        return LogicalPlan::Join(join).recompute_schema();
    }
    let (preserved, other) = match join.join_type {
        JoinType::Left => (&join.left, &join.right),
        JoinType::Right => (&join.right, &join.left),
        JoinType::Full => {
            return Err(to_datafusion(SqlError::unsupported(
                "a FULL JOIN with a subquery of both sides in its condition",
            )));
        }
        other => return internal_err!("a {other} join has a condition with a subquery over both sides"),
    };
    let keys = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let Some(condition) = conjunction(keys.chain(join.filter.clone())) else {
        return internal_err!("a join with a subquery over both sides has no condition");
    };
    let condition = condition.transform_up(|part| {
        Ok(match part {
            Expr::Column(column) if preserved.schema().has_column(&column) => {
                let field = preserved.schema().qualified_field_from_column(&column)?.1;
                Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column))
            }
            part => Transformed::no(part),
        })
    })?;
    let plan = LogicalPlanBuilder::from(Arc::clone(other)).filter(condition.data)?.build()?;
    let handling = NullHandling::PreserveAndExpandEmpty;
    let joined = unnest_subquery(preserved.as_ref().clone(), &Arc::new(plan), None, handling, within)?;
    joined.project(join.schema.columns().into_iter().map(Expr::Column))?.build()
}

/// Returns the LATERAL subquery on a join's right side, and its alias.
fn lateral_subquery(right: &LogicalPlan) -> Option<(Option<TableReference>, &Subquery)> {
    match right {
        LogicalPlan::Subquery(subquery) => Some((None, subquery)),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some((Some(alias.alias.clone()), subquery)),
            _ => None,
        },
        _ => None,
    }
}
