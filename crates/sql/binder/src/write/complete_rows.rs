//! Completes rows of some columns to rows of a table: casts, defaults and constraints.

use std::sync::Arc;

use catalog::{Column, Table};
use datafusion::common::{Column as ColumnReference, ScalarValue};
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, ScalarUDF};
use functions::cast::typed_literal;
use functions::error::from_datafusion;
use functions::{ConstraintCheck, check_constraints};
use syntax::parse_stored_expr;
use system_catalog::nextval_default;
use types::{SqlResult, SqlType};

use super::assignment_cast::cast_for_assignment;
use super::target::WriteTarget;
use crate::bind::Binder;
use crate::query_plan::{OptimizedPlanCache, OuterLimit, OutputColumn, QueryPlan};
use crate::semantics::expr_type::type_of;
use crate::semantics::with_type_metadata;

/// Completes the rows of `source`, whose columns fill the positions `filled` of the table in order.
///
/// # Errors
/// Those of [`cast_for_assignment`], and errors of a default.
pub(super) fn complete_rows(
    binder: &Binder<'_>,
    target: &WriteTarget,
    source: LogicalPlan,
    filled: &[usize],
) -> SqlResult<LogicalPlan> {
    let types = column_types(&source)?;
    let names = source.schema().columns();
    let columns = target.table.columns.iter().enumerate().map(|(position, column)| {
        let value = match filled.iter().position(|filled| *filled == position) {
            Some(place) => {
                let value = Expr::Column(names[place].clone());
                cast_for_assignment(value, &types[place], &column.name, &column.sql_type, binder.session())?
            }
            None => column_default(binder, column)?,
        };
        Ok(value.alias(&column.name))
    });
    let columns = columns.collect::<SqlResult<Vec<_>>>()?;
    add_constraint_check(binder, target, build_projection(columns, source)?)
}

/// Adds the test of the table's constraints to `source`, which has the table's columns and perhaps others.
pub(super) fn add_constraint_check(
    binder: &Binder<'_>,
    target: &WriteTarget,
    source: LogicalPlan,
) -> SqlResult<LogicalPlan> {
    add_constraint_check_unless(binder, target, source, None)
}

/// Adds the test of the table's constraints, except for rows that fulfil `unless`. See [`add_constraint_check`].
pub(super) fn add_constraint_check_unless(
    binder: &Binder<'_>,
    target: &WriteTarget,
    source: LogicalPlan,
    unless: Option<Expr>,
) -> SqlResult<LogicalPlan> {
    let table = &target.table;
    let Some(function) = ConstraintCheck::udf(table, &target.schema, binder.session()) else { return Ok(source) };
    let named = |column: &Column| Expr::Column(ColumnReference::new_unqualified(&column.name));
    let mut arguments: Vec<Expr> = table.columns.iter().map(named).collect();
    for (_, text) in check_constraints(table) {
        arguments.push(binder.bind_column_expression(&parse_stored_expr(text)?, &table.columns, &SqlType::Bool)?);
    }
    let first = table.columns[0].name.as_str();
    let asked = call(function, arguments);
    let asked = match unless {
        None => asked,
        Some(unless) => {
            let branch = (Box::new(unless), Box::new(named(&table.columns[0])));
            with_type_metadata(
                Expr::Case(Case::new(None, vec![branch], Some(Box::new(asked)))),
                &table.columns[0].sql_type,
            )
        }
    };
    let mut asked = Some(asked.alias(first));
    let columns = source.schema().columns().into_iter().map(|column| match asked.take_if(|_| column.name == first) {
        Some(asked) => asked,
        None => Expr::Column(column),
    });
    let columns = columns.collect();
    build_projection(columns, source)
}

/// Returns the default of a column: its next identity value, its DEFAULT or NULL.
pub(super) fn column_default(binder: &Binder<'_>, column: &Column) -> SqlResult<Expr> {
    if let Some(identity) = column.identity {
        return binder
            .bind_default_expression(&parse_stored_expr(&nextval_default(identity.sequence))?, &column.sql_type);
    }
    match &column.default {
        Some(text) => binder.bind_default_expression(&parse_stored_expr(text)?, &column.sql_type),
        None => null_of_type(&column.sql_type),
    }
}

/// Wraps a plan of complete rows of a table as the input of a [`WritePlan`](crate::WritePlan).
pub fn write_input(binder: &Binder<'_>, table: &Table, plan: LogicalPlan, parameters: Vec<SqlType>) -> QueryPlan {
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
        locked_limit: OuterLimit::default(),
        depends_on_time: binder.has_read_now(),
        optimized: OptimizedPlanCache::default(),
        planning_timings: binder.planning_timings().clone(),
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
pub(super) fn null_of_type(sql_type: &SqlType) -> SqlResult<Expr> {
    let value = ScalarValue::try_from(&sql_type.arrow_type()).map_err(from_datafusion)?;
    Ok(typed_literal(value, sql_type))
}

/// Builds a projection.
///
/// # Errors
/// Internal errors only: the names of columns are resolved.
pub fn build_projection(columns: Vec<Expr>, input: LogicalPlan) -> SqlResult<LogicalPlan> {
    Projection::try_new(columns, Arc::new(input)).map(LogicalPlan::Projection).map_err(from_datafusion)
}

fn call(function: Arc<ScalarUDF>, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments))
}
