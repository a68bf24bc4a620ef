//! GROUP BY, DISTINCT and set operations over types with comparison keys (intervals, jsonb): rows are grouped by the
//! key, such as an interval's length, and one of the group's values is returned.

use std::sync::Arc;

use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, Projection, when};
use functions::comparison_key;
use plan::unique_name;
use session_context::EvaluationContext;

use super::compare::check_element_type;
use super::expr_type::type_of;
use super::grouping_set::{map_grouping_arguments, map_set_keys};
use super::type_resolution::{to_comparison_key, with_type_metadata};

/// Rewrites an aggregation to group by comparison keys.
pub(super) fn group_by_comparison_keys(aggregate: Aggregate, session: &Arc<EvaluationContext>) -> Result<LogicalPlan> {
    let input = Arc::clone(&aggregate.input);
    let keys: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().cloned().collect();
    let mut compared = Vec::with_capacity(keys.len());
    for key in &keys {
        compared.push(comparison_key_of(key, &input, session)?);
    }
    if compared.iter().all(Option::is_none) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let replace = |expr: Expr| match keys.iter().position(|key| *key == expr) {
        Some(at) => compared[at].clone().unwrap_or(expr),
        None => expr,
    };
    let group_expr = aggregate.group_expr.iter().cloned().map(|key| map_set_keys(key, &replace)).collect();
    let aggregates = aggregate.aggr_expr.len();
    let mut aggr_expr: Vec<Expr> =
        aggregate.aggr_expr.iter().cloned().map(|call| map_grouping_arguments(call, &replace)).collect();
    let before = Arc::clone(&aggregate.schema);
    let mut shown = vec![None; keys.len()];
    for (at, key) in keys.iter().enumerate().filter(|(at, _)| compared[*at].is_some()) {
        let is_taken = |name: &str| before.has_column_with_unqualified_name(name);
        let name = unique_name(&format!("shown_{at}"), is_taken);
        aggr_expr.push(first_value(key.clone().unalias(), Vec::new()).alias(&name));
        shown[at] = Some(Expr::Column(Column::new_unqualified(name)));
    }
    let before_input = Arc::clone(&input);
    let after = Aggregate::try_new(input, group_expr, aggr_expr)?;
    let column = |at: usize| Expr::Column(Column::from(after.schema.qualified_field(at)));
    let set_number = before.fields().len() - keys.len() - aggregates;
    let positions = (0..keys.len()).chain(keys.len() + set_number..before.fields().len());
    let outputs = positions.map(|at| {
        let (qualifier, field) = before.qualified_field(at);
        let value = match shown.get(at) {
            // A key that is not part of the row's grouping set is NULL.
            Some(Some(shown)) => {
                let value = when(column(at).is_not_null(), shown.clone()).end()?;
                with_type_metadata(value, &type_of(&keys[at], before_input.schema().as_ref())?)
            }
            _ => column(at),
        };
        Ok(value.alias_qualified(qualifier.cloned(), field.name()))
    });
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    Projection::try_new(outputs, Arc::new(LogicalPlan::Aggregate(after))).map(LogicalPlan::Projection)
}

/// Rewrites DISTINCT over such values to a grouping.
pub(super) fn distinct_by_comparison_keys(distinct: Distinct, session: &Arc<EvaluationContext>) -> Result<LogicalPlan> {
    match distinct {
        Distinct::All(input) => {
            let columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
            for column in &columns {
                if comparison_key_of(column, &input, session)?.is_some() {
                    return group_by_comparison_keys(Aggregate::try_new(input, columns, Vec::new())?, session);
                }
            }
            Ok(LogicalPlan::Distinct(Distinct::All(input)))
        }
        Distinct::On(mut on) => {
            let schema = Arc::clone(on.input.schema());
            for key in &mut on.on_expr {
                *key = to_comparison_key(key.clone(), &schema, session)?;
            }
            for key in on.sort_expr.iter_mut().flatten() {
                key.expr = to_comparison_key(key.expr.clone(), &schema, session)?;
            }
            // A repeated key has no effect, and DataFusion does not remove it.
            let mut known = Vec::new();
            on.on_expr.retain(|key| is_new(&mut known, key));
            known.clear();
            on.sort_expr.iter_mut().for_each(|keys| keys.retain(|key| is_new(&mut known, &key.expr)));
            Ok(LogicalPlan::Distinct(Distinct::On(on)))
        }
    }
}

fn is_new(known: &mut Vec<Expr>, key: &Expr) -> bool {
    let is_new = !known.contains(key);
    if is_new {
        known.push(key.clone());
    }
    is_new
}

/// Returns the comparison key of a key, if its type has one.
fn comparison_key_of(key: &Expr, input: &LogicalPlan, session: &Arc<EvaluationContext>) -> Result<Option<Expr>> {
    let sql_type = type_of(key, input.schema().as_ref())?;
    check_element_type(&sql_type)?;
    comparison_key(&sql_type).map(|key_of| key_of(key.clone().unalias(), session)).transpose()
}
