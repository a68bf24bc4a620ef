//! LATERAL subqueries without a join form: their rows are a list for each row of the left side, which is then unnested.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, NullHandling, Result as DfResult, ScalarValue, TableReference, UnnestOptions};
use datafusion::functions::core::get_field;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Subquery, lit};
use types::SqlError;

use super::Surroundings;
use super::evaluate::{Dependent, Question, field_name};
use super::lower::{has_aggregate, is_correlated_by_equality, is_plainly_correlated};
use super::parameter::outer_references;
use crate::error::to_datafusion;
use crate::series;

/// The column of the lists; no identifier of a client's can be it.
const ROWS: &str = "lateral\u{1}";

/// The join with a LATERAL subquery as an unnesting of its rows, unless DataFusion joins it.
pub(super) fn lower_join(join: Join, within: &Surroundings) -> DfResult<Transformed<LogicalPlan>> {
    let Some((alias, subquery)) = lateral(&join.right) else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    if is_plainly_correlated(&subquery.subquery)?
        && (!has_aggregate(&subquery.subquery)? || is_correlated_by_equality(&subquery.subquery)?)
    {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let condition =
        conjunction(join.on.iter().map(|(left, right)| left.clone().eq(right.clone())).chain(join.filter.clone()))
            .filter(|condition| *condition != lit(true));
    if join.join_type == JoinType::Inner
        && let Some((multiplied, values)) = series::beside(&join.left, &subquery.subquery)?
    {
        let kept = join.left.schema().columns().into_iter().map(Expr::Column);
        let named = values.into_iter().zip(subquery.subquery.schema().iter());
        let named = named.map(|(value, (qualifier, field))| {
            value.unalias().alias_qualified(alias.clone().or_else(|| qualifier.cloned()), field.name())
        });
        let plan = LogicalPlanBuilder::from(multiplied).project(kept.chain(named).collect::<Vec<_>>())?;
        let plan = match condition {
            Some(condition) => plan.filter(condition)?,
            None => plan,
        };
        return plan.build().map(Transformed::yes);
    }
    let null_handling = match (join.join_type, &condition) {
        (JoinType::Inner, _) => NullHandling::Drop,
        (JoinType::Left, None) => NullHandling::PreserveAndExpandEmpty,
        _ => return Err(to_datafusion(SqlError::unsupported("this kind of join with a LATERAL subquery"))),
    };
    let plan = Arc::clone(&subquery.subquery);
    let left = join.left.as_ref().clone();
    let references = outer_references(&plan)?;
    let outer: Vec<Column> = references.iter().map(|(_, column)| column.clone()).collect();
    let arguments = references.into_iter().map(|(field, column)| {
        let is_near = left.schema().has_column(&column);
        if is_near { Expr::Column(column) } else { Expr::OuterReferenceColumn(field, column) }
    });
    let function = ScalarUDF::from(Dependent::new(Question::Rows, Arc::clone(&plan), outer, within));
    let call = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), arguments.collect()));
    let kept: Vec<Expr> = left.schema().columns().into_iter().map(Expr::Column).collect();
    let rows = Column::new_unqualified(ROWS);
    let fields = plan.schema().iter().enumerate().map(|(at, (qualifier, field))| {
        let row = Expr::Column(rows.clone());
        let name = lit(ScalarValue::Utf8(Some(field_name(at))));
        let value = Expr::ScalarFunction(ScalarFunction::new_udf(get_field(), vec![row, name]));
        value.alias_qualified(alias.clone().or_else(|| qualifier.cloned()), field.name())
    });
    let outputs: Vec<Expr> = kept.iter().cloned().chain(fields).collect();
    let unnested = LogicalPlanBuilder::from(left)
        .project(kept.into_iter().chain([call.alias(ROWS)]))?
        .unnest_columns_with_options(vec![rows.clone()], UnnestOptions::new().with_null_handling(null_handling))?
        .project(outputs)?;
    let filtered = match condition {
        Some(condition) => unnested.filter(condition)?,
        None => unnested,
    };
    filtered.build().map(Transformed::yes)
}

/// The subquery on a join's right side, and its alias.
fn lateral(right: &LogicalPlan) -> Option<(Option<TableReference>, &Subquery)> {
    match right {
        LogicalPlan::Subquery(subquery) => Some((None, subquery)),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some((Some(alias.alias.clone()), subquery)),
            _ => None,
        },
        _ => None,
    }
}
