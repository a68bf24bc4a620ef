//! Type inference of parameters `$1`, `$2`, … that the client does not declare.
//!
//! The statement is planned with the types resolved so far; the first place that determines a parameter's type
//! determines it everywhere, and the statement is planned again. A parameter that no place determines is text.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{self, Query};
use functions::cast::oversized_numeric;
use functions::error::from_datafusion;
use syntax::Walk;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::Binder;
use super::parameter_digits::is_numeric;

/// Converts parameter types for DataFusion's planner.
pub(super) fn fields(types: &[Option<SqlType>]) -> Vec<Option<FieldRef>> {
    types
        .iter()
        .enumerate()
        .map(|(at, sql_type)| {
            sql_type.as_ref().map(|sql_type| Arc::new(sql_type.arrow_field(&format!("${}", at + 1), true)))
        })
        .collect()
}

/// Returns the types.
///
/// # Errors
/// SQLSTATE 42P18 if one is unknown.
pub(crate) fn resolved_types(types: Vec<Option<SqlType>>) -> SqlResult<Vec<SqlType>> {
    let of = |(at, sql_type): (usize, Option<SqlType>)| {
        sql_type.filter(|known| *known != SqlType::Unknown).ok_or_else(|| indeterminate(at))
    };
    types.into_iter().enumerate().map(of).collect()
}

/// Returns whether a query has parameters.
pub(super) fn has_any(query: &Query) -> bool {
    let is_parameter = |expr: &ast::Expr| match expr {
        ast::Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    query.walk_expressions(is_parameter).is_break()
}

/// Calls `plan`, which may plan a part of a statement, until every parameter in the plan has a type. Parameters that
/// are not in the plan are returned as unknown.
pub(super) fn infer_types(
    binder: &Binder<'_>,
    declared: &[Option<SqlType>],
    mut plan: impl FnMut(&[Option<SqlType>]) -> SqlResult<LogicalPlan>,
) -> SqlResult<(LogicalPlan, Vec<SqlType>)> {
    let mut types: Vec<Option<SqlType>> =
        declared.iter().map(|sql_type| sql_type.clone().filter(|known| *known != SqlType::Unknown)).collect();
    binder.add_recorded_types(&mut types);
    loop {
        let planned = plan(&types)?;
        let places = collect_uses(&planned)?;
        let count = types.len().max(places.len());
        types.resize(count, None);
        let mut changed = false;
        // True if the plan has each parameter with the type that planning it again would give.
        let mut is_final = true;
        for (sql_type, place) in types.iter_mut().zip(&places) {
            if sql_type.is_none() && place.is_used {
                is_final &= place.has_one_type;
                changed |= place.sql_type.is_some();
                sql_type.clone_from(&place.sql_type);
            }
        }
        if changed && is_final {
            return Ok((planned, with_unknown(types)));
        }
        if !changed {
            for (at, sql_type) in types.iter_mut().enumerate() {
                if sql_type.is_some() {
                    continue;
                }
                if places.get(at).is_some_and(|place| place.is_used) {
                    *sql_type = Some(SqlType::Text);
                    changed = true;
                }
            }
        }
        if !changed {
            return Ok((planned, with_unknown(types)));
        }
    }
}

/// Returns the types, with unknown for those that are not determined.
fn with_unknown(types: Vec<Option<SqlType>>) -> Vec<SqlType> {
    types.into_iter().map(|sql_type| sql_type.unwrap_or(SqlType::Unknown)).collect()
}

/// Substitutes the values of numeric parameters: only with its value can a number be moved to the type it is compared
/// with, and an expression have the right digits. Other parameters stay; their values do not affect the plan.
pub(super) fn substitute_numeric_values(binder: &Binder<'_>, plan: LogicalPlan) -> SqlResult<LogicalPlan> {
    let values = &binder.context.arguments;
    let value_of = |placeholder: &Placeholder| {
        let declared = placeholder.field.as_ref().and_then(|field| SqlType::from_arrow_field(field))?;
        values.get(parameter_index(&placeholder.id)?).filter(|_| is_numeric(&declared))
    };
    if values.is_empty() || !binder.parameter_types.iter().flatten().any(is_numeric) {
        return Ok(plan);
    }
    let substituted = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let substituted = expr.transform_up(|expr| {
                Ok(match &expr {
                    Expr::Placeholder(placeholder) => match value_of(placeholder) {
                        Some(value) => Transformed::yes(match value.try_as_str().flatten() {
                            Some(text) => oversized_numeric(text, binder.session()),
                            None => Expr::Literal(value.clone(), None),
                        }),
                        None => Transformed::no(expr),
                    },
                    _ => Transformed::no(expr),
                })
            })?;
            Ok(substituted.update_data(|expr| name.restore(expr)))
        })
    });
    substituted.map(|plan| plan.data).map_err(from_datafusion)
}

/// Returns the type of the value of a parameter declared as `numeric` or an array of it; `None` for values of other
/// types.
fn sent_type(value: &ScalarValue) -> Option<SqlType> {
    SqlType::from_arrow_type(&value.data_type()).filter(is_numeric)
}

/// Returns the types of parameters declared as `declared` given their `values`: numerics have the digits of their
/// values.
#[must_use]
pub fn types_with_values(declared: &[SqlType], values: &[ScalarValue]) -> Vec<Option<SqlType>> {
    let with_value = |(at, declared): (usize, &SqlType)| {
        let sent = values.get(at).and_then(sent_type);
        Some(sent.filter(|sent| sent.without_modifier() == *declared).unwrap_or_else(|| declared.clone()))
    };
    declared.iter().enumerate().map(with_value).collect()
}

fn indeterminate(at: usize) -> SqlError {
    SqlError::new(Condition::IndeterminateDatatype, format!("could not determine data type of parameter ${}", at + 1))
}

/// Occurrences of one parameter in a plan.
#[derive(Debug, Clone, Default)]
struct ParameterUse {
    is_used: bool,
    /// Type without a modifier, from the first occurrence that has one.
    sql_type: Option<SqlType>,
    /// True if every occurrence has exactly that type.
    has_one_type: bool,
}

/// Collects the occurrences of `$1`, `$2`, …, in order.
fn collect_uses(plan: &LogicalPlan) -> SqlResult<Vec<ParameterUse>> {
    let mut places: Vec<ParameterUse> = Vec::new();
    plan.apply_with_subqueries(|node| {
        let in_limit = matches!(node, LogicalPlan::Limit(_));
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Placeholder(placeholder) = expr
                    && let Some(at) = parameter_index(&placeholder.id)
                {
                    if places.len() <= at {
                        places.resize(at + 1, ParameterUse::default());
                    }
                    let place = &mut places[at];
                    let written = placeholder.field.as_ref().and_then(|field| SqlType::from_arrow_field(field));
                    if place.sql_type.is_none() {
                        // The parameter does not take over the length or digits of a column next to it.
                        let bare = written.as_ref().map(SqlType::without_modifier);
                        place.sql_type = bare.or_else(|| in_limit.then_some(SqlType::Int8));
                    }
                    let is_as_said = written.is_some() && written == place.sql_type;
                    place.has_one_type = is_as_said && (place.has_one_type || !place.is_used);
                    place.is_used = true;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(from_datafusion)?;
    Ok(places)
}

/// Limit on the parameters of a statement: the protocol counts them in 16 bits.
const COUNT_MAX: usize = 65_535;

/// Returns the index of the parameter `$n`, from 0.
pub fn parameter_index(id: &str) -> Option<usize> {
    let number: usize = id.strip_prefix('$')?.parse().ok()?;
    number.checked_sub(1).filter(|at| *at < COUNT_MAX)
}
