//! Analyzer rule that turns UNNEST of only series into a [`ProjectSet`].

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, Projection, Unnest};
use datafusion::optimizer::AnalyzerRule;
use functions::cast::{CastKind, lower as lower_cast};
use functions::series::{Kind, SERIES, SUBSCRIPTS};
use optimizer::series::{ProjectSet, SetColumn};
use session_context::Session;
use types::SqlType;

use super::typed::type_of;

/// Rule that runs after type resolution, before anything evaluates calls.
#[derive(Debug)]
pub(super) struct StreamedSeries {
    pub(super) session: Arc<Session>,
}

impl AnalyzerRule for StreamedSeries {
    fn name(&self) -> &'static str {
        "streamed_series"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Unnest(unnest) => match streamed(&unnest, &self.session)? {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(LogicalPlan::Unnest(unnest))),
            },
            node => Ok(Transformed::no(node)),
        })
        .map(|transformed| transformed.data)
    }
}

/// Origin of an unnested list.
enum List<'a> {
    Series(&'a Expr),
    Subscripts,
}

fn streamed(unnest: &Unnest, session: &Arc<Session>) -> Result<Option<LogicalPlan>> {
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
            columns.push(SetColumn::Passed(Expr::Column(Column::new(qualifier, name))));
            continue;
        }
        match list(expr) {
            Some(List::Subscripts) => columns.push(SetColumn::Ordinal),
            Some(List::Series(call)) => {
                let SqlType::Array(element) = type_of(call, input.as_ref())? else { return Ok(None) };
                let Some(kind) = Kind::of(&element, session.zone) else { return Ok(None) };
                let mut args = Vec::new();
                for arg in arguments(call) {
                    let from = type_of(arg, input.as_ref())?;
                    let to = if from == SqlType::Interval { &SqlType::Interval } else { &*element };
                    let name = format!("series\u{1}{}", exprs.len());
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

fn list(expr: &Expr) -> Option<List<'_>> {
    match expr {
        Expr::Alias(alias) => list(&alias.expr),
        Expr::ScalarFunction(call) if call.func.name() == SERIES => Some(List::Series(expr)),
        // The list of a series has one dimension.
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == SUBSCRIPTS => {
            matches!(list(args.first()?)?, List::Series(_)).then_some(List::Subscripts)
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
