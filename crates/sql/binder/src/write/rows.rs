//! Completes rows of some columns to rows of a table: casts, defaults and constraints.

use std::sync::Arc;

use catalog::{Column, Table};
use datafusion::common::{Column as ColumnReference, ScalarValue};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, ScalarUDF};
use functions::cast::typed_literal;
use functions::error::from_datafusion;
use functions::{Constrained, checks};
use syntax::expr_of;
use system_catalog::next_of;
use types::{SqlResult, SqlType};

use super::assign::assign;
use super::target::Target;
use crate::bind::Binder;
use crate::query_plan::{LockedLimit, OptimizedOnce, OutputColumn, QueryPlan};
use crate::semantics::marked;
use crate::semantics::typed::type_of;

/// Completes the rows of `source`, whose columns fill the positions `filled` of the table in order.
///
/// # Errors
/// Those of [`assign`], and errors of a default.
pub(super) fn complete(
    binder: &Binder<'_>,
    target: &Target,
    source: LogicalPlan,
    filled: &[usize],
) -> SqlResult<LogicalPlan> {
    let types = column_types(&source)?;
    let names = source.schema().columns();
    let columns = target.table.columns.iter().enumerate().map(|(position, column)| {
        let value = match filled.iter().position(|filled| *filled == position) {
            Some(place) => {
                let value = Expr::Column(names[place].clone());
                assign(value, &types[place], &column.name, &column.sql_type, binder.session())?
            }
            None => default(binder, column)?,
        };
        Ok(value.alias(&column.name))
    });
    let columns = columns.collect::<SqlResult<Vec<_>>>()?;
    checked(binder, target, projection(columns, source)?)
}

/// Adds the test of the table's constraints to `source`, which has the table's columns and perhaps others.
pub(super) fn checked(binder: &Binder<'_>, target: &Target, source: LogicalPlan) -> SqlResult<LogicalPlan> {
    checked_unless(binder, target, source, None)
}

/// Adds the test of the table's constraints, except for rows that fulfil `unless`. See [`checked`].
pub(super) fn checked_unless(
    binder: &Binder<'_>,
    target: &Target,
    source: LogicalPlan,
    unless: Option<Expr>,
) -> SqlResult<LogicalPlan> {
    let table = &target.table;
    let Some(function) = Constrained::udf(table, &target.schema, binder.session()) else { return Ok(source) };
    let named = |column: &Column| Expr::Column(ColumnReference::new_unqualified(&column.name));
    let mut arguments: Vec<Expr> = table.columns.iter().map(named).collect();
    for (_, text) in checks(table) {
        arguments.push(binder.column_expression(&expr_of(text)?, &table.columns, &SqlType::Bool)?);
    }
    let first = table.columns[0].name.as_str();
    let asked = call(function, arguments);
    let asked = match unless {
        None => asked,
        Some(unless) => {
            let branch = (Box::new(unless), Box::new(named(&table.columns[0])));
            marked(Expr::Case(Case::new(None, vec![branch], Some(Box::new(asked)))), &table.columns[0].sql_type)
        }
    };
    let mut asked = Some(asked.alias(first));
    let columns = source.schema().columns().into_iter().map(|column| match asked.take_if(|_| column.name == first) {
        Some(asked) => asked,
        None => Expr::Column(column),
    });
    let columns = columns.collect();
    projection(columns, source)
}

/// Returns the default of a column: its next identity value, its DEFAULT or NULL.
pub(super) fn default(binder: &Binder<'_>, column: &Column) -> SqlResult<Expr> {
    if let Some(identity) = column.identity {
        return binder.default_expression(&expr_of(&next_of(identity.sequence))?, &column.sql_type);
    }
    match &column.default {
        Some(text) => binder.default_expression(&expr_of(text)?, &column.sql_type),
        None => null(&column.sql_type),
    }
}

/// Wraps a plan of complete rows of a table as the input of a [`WritePlan`](crate::WritePlan).
pub fn input(binder: &Binder<'_>, table: &Table, plan: LogicalPlan, parameters: Vec<SqlType>) -> QueryPlan {
    let columns = table.columns.iter().map(|column| OutputColumn {
        name: column.name.clone(),
        sql_type: column.sql_type.clone(),
        table: None,
        column: None,
    });
    QueryPlan {
        plan,
        columns: columns.collect(),
        parameters,
        state: binder.state(),
        locks: Vec::new(),
        locked_limit: LockedLimit::default(),
        has_read_now: binder.has_read_now(),
        optimized: OptimizedOnce::default(),
        phases: binder.phases().clone(),
    }
}

/// Returns the types of a plan's columns; a quoted literal in its SELECT list is still untyped.
pub fn column_types(plan: &LogicalPlan) -> SqlResult<Vec<SqlType>> {
    let types: Result<_, _> = match plan {
        LogicalPlan::Limit(limit) => return column_types(&limit.input),
        LogicalPlan::Sort(sort) => return column_types(&sort.input),
        LogicalPlan::Projection(projection) => {
            let schema = projection.input.schema().as_ref();
            projection.expr.iter().map(|expr| type_of(expr, schema)).collect()
        }
        other => {
            let schema = other.schema().as_ref();
            other.schema().columns().into_iter().map(|column| type_of(&Expr::Column(column), schema)).collect()
        }
    };
    types.map_err(from_datafusion)
}

/// Builds NULL of a type.
pub(super) fn null(sql_type: &SqlType) -> SqlResult<Expr> {
    let value = ScalarValue::try_from(&sql_type.arrow_type()).map_err(from_datafusion)?;
    Ok(typed_literal(value, sql_type))
}

/// Builds a projection.
///
/// # Errors
/// Internal errors only: the names of columns are resolved.
pub fn projection(columns: Vec<Expr>, input: LogicalPlan) -> SqlResult<LogicalPlan> {
    Projection::try_new(columns, Arc::new(input)).map(LogicalPlan::Projection).map_err(from_datafusion)
}

fn call(function: Arc<ScalarUDF>, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments))
}
