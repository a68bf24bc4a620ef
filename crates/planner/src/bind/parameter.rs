//! Parameters: the types of `$1`, `$2`, … where the client leaves them open.
//!
//! Planning is tried with what is known; whatever place fixes a parameter's type first fixes it for all its places, and the
//! statement is planned again with it. What no place fixes is text.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::Binder;
use crate::error::from_datafusion;

/// Parameter types as DataFusion's planner takes them.
pub(super) fn fields(types: &[Option<SqlType>]) -> Vec<Option<FieldRef>> {
    types
        .iter()
        .enumerate()
        .map(|(at, sql_type)| {
            sql_type.as_ref().map(|sql_type| Arc::new(sql_type.arrow_field(&format!("${}", at + 1), true)))
        })
        .collect()
}

/// The types, all of them known.
pub(crate) fn settled(types: Vec<Option<SqlType>>) -> SqlResult<Vec<SqlType>> {
    let of = |(at, sql_type): (usize, Option<SqlType>)| {
        sql_type.filter(|known| *known != SqlType::Unknown).ok_or_else(|| indeterminate(at))
    };
    types.into_iter().enumerate().map(of).collect()
}

/// Plans with `plan`, which may be a part of a statement, until every parameter that it has is of a known type. Others are told as
/// unknown.
pub(super) fn settle(
    binder: &Binder<'_>,
    declared: &[Option<SqlType>],
    plan: impl Fn(&[Option<SqlType>]) -> SqlResult<LogicalPlan>,
) -> SqlResult<(LogicalPlan, Vec<SqlType>)> {
    let mut types: Vec<Option<SqlType>> =
        declared.iter().map(|sql_type| sql_type.clone().filter(|known| *known != SqlType::Unknown)).collect();
    binder.add_noted(&mut types);
    loop {
        let planned = plan(&types)?;
        let places = places(&planned)?;
        let count = types.len().max(places.len());
        types.resize(count, None);
        let mut changed = false;
        for (sql_type, place) in types.iter_mut().zip(&places) {
            if sql_type.is_none() && place.sql_type.is_some() {
                sql_type.clone_from(&place.sql_type);
                changed = true;
            }
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
            let types = types.into_iter().map(|sql_type| sql_type.unwrap_or(SqlType::Unknown)).collect();
            return Ok((planned, types));
        }
    }
}

fn indeterminate(at: usize) -> SqlError {
    SqlError::new(Condition::IndeterminateDatatype, format!("could not determine data type of parameter ${}", at + 1))
}

/// What a plan says about one parameter.
#[derive(Debug, Clone, Default)]
struct Place {
    is_used: bool,
    sql_type: Option<SqlType>,
}

/// What the plan says about `$1`, `$2`, … in order.
fn places(plan: &LogicalPlan) -> SqlResult<Vec<Place>> {
    let mut places: Vec<Place> = Vec::new();
    plan.apply_with_subqueries(|node| {
        let in_limit = matches!(node, LogicalPlan::Limit(_));
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Placeholder(placeholder) = expr
                    && let Some(at) = index(&placeholder.id)
                {
                    if places.len() <= at {
                        places.resize(at + 1, Place::default());
                    }
                    let place = &mut places[at];
                    place.is_used = true;
                    if place.sql_type.is_none() {
                        let written = placeholder.field.as_ref().and_then(|field| SqlType::from_arrow_field(field));
                        place.sql_type = written.or_else(|| in_limit.then_some(SqlType::Int8));
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(from_datafusion)?;
    Ok(places)
}

/// The most parameters a statement can have: the protocol counts them in 16 bits.
const COUNT_MAX: usize = 65_535;

fn index(id: &str) -> Option<usize> {
    let number: usize = id.strip_prefix('$')?.parse().ok()?;
    number.checked_sub(1).filter(|at| *at < COUNT_MAX)
}
