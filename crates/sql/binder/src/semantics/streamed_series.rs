//! Analyzer rule that turns UNNEST of only series into a [`ProjectSet`].

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, Projection, Unnest};
use datafusion::optimizer::AnalyzerRule;
use functions::cast::{CastKind, lower_cast};
use functions::series::{SUBSCRIPTS_FUNCTION, SeriesType};
use functions::{SpecialCall, special_call};
use optimizer::series::{ProjectSet, SetColumn};
use plan::unique_name;
use session_context::EvaluationContext;
use types::SqlType;

use super::expr_type::type_of;

/// Rule that runs after type resolution, before anything evaluates calls.
#[derive(Debug)]
pub(super) struct StreamedSeries {
    pub(super) session: Arc<EvaluationContext>,
}

impl AnalyzerRule for StreamedSeries {
    fn name(&self) -> &'static str {
        "streamed_series"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Unnest(unnest) => match stream_series(&unnest, &self.session)? {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(LogicalPlan::Unnest(unnest))),
            },
            node => Ok(Transformed::no(node)),
        })
        .map(|transformed| transformed.data)
    }
}

/// Origin of an unnested list.
enum ListOrigin<'a> {
    Series(&'a Expr),
    Subscripts,
}

fn stream_series(unnest: &Unnest, session: &Arc<EvaluationContext>) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Projection(lists) = unnest.input.as_ref() else { return Ok(None) };
    let input = lists.input.schema();
    let mut exprs = Vec::new();
    let mut columns = Vec::with_capacity(unnest.dependency_indices.len());
    let mut series = Vec::new();
    for at in &unnest.dependency_indices {
        let expr = &lists.expr[*at];
        if !unnest.list_type_columns.iter().any(|(list, _)| list == at) {
            let (qualifier, name) = expr.qualified_name();
            exprs.push(expr.clone());
            columns.push(SetColumn::Input(Expr::Column(Column::new(qualifier, name))));
            continue;
        }
        match list_origin(expr) {
            Some(ListOrigin::Subscripts) => columns.push(SetColumn::Ordinal),
            Some(ListOrigin::Series(call)) => {
                let SqlType::Array(element) = type_of(call, input.as_ref())? else { return Ok(None) };
                let Some(kind) = SeriesType::from_sql_type(&element, session.zone) else { return Ok(None) };
                let mut args = Vec::new();
                for arg in arguments(call) {
                    let from = type_of(arg, input.as_ref())?;
                    let to = if from == SqlType::Interval { &SqlType::Interval } else { &*element };
                    let is_taken = |name: &str| lists.schema.has_column_with_unqualified_name(name);
                    let name = unique_name(&format!("series_{}", exprs.len()), is_taken);
                    let arg = lower_cast(arg.clone(), &from, to, CastKind::Assignment, session)?;
                    exprs.push(arg.alias(&name));
                    args.push(Expr::Column(Column::new_unqualified(name)));
                }
                series.push(call);
                columns.push(SetColumn::Series { kind, args });
            }
            None => return Ok(None),
        }
    }
    let numbered = columns.iter().any(|column| matches!(column, SetColumn::Ordinal));
    let is_flat = unnest.struct_type_columns.is_empty() && unnest.list_type_columns.iter().all(|(_, it)| it.depth == 1);
    if series.is_empty() || (numbered && series.len() > 1) || !is_flat {
        return Ok(None);
    }
    let input = Projection::try_new(exprs, Arc::clone(&lists.input))?;
    let input = Arc::new(LogicalPlan::Projection(input));
    let node = ProjectSet { input, columns, schema: Arc::clone(&unnest.schema) };
    Ok(Some(LogicalPlan::Extension(Extension { node: Arc::new(node) })))
}

fn list_origin(expr: &Expr) -> Option<ListOrigin<'_>> {
    match expr {
        Expr::Alias(alias) => list_origin(&alias.expr),
        Expr::ScalarFunction(call) if special_call(&call.func) == Some(SpecialCall::SeriesList) => {
            Some(ListOrigin::Series(expr))
        }
        // The list of a series has one dimension.
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == SUBSCRIPTS_FUNCTION => {
            matches!(list_origin(args.first()?)?, ListOrigin::Series(_)).then_some(ListOrigin::Subscripts)
        }
        _ => None,
    }
}

fn arguments(call: &Expr) -> &[Expr] {
    match call {
        Expr::ScalarFunction(call) => &call.args,
        _ => &[],
    }
}
