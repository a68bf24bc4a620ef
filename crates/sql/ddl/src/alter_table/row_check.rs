//! Checks of existing rows for constraints that an alteration adds, and the update that fills new columns.

use std::sync::Arc;

use binder::{Binder, ModifyPlan, NoRowCheck, QueryPlan, write};
use catalog::{Change, Column, Constraint, ConstraintKind};
use datafusion::sql::sqlparser::ast::{Expr, Ident};
use session_context::StatementContext;
use syntax::statement::{AssignedValue, Assignment, ModifiedTable, Update};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::Alteration;
use crate::{key_check, name_resolution};

/// Returns the queries that must find no row before the changes are applied.
///
/// # Errors
/// `23502`, without a query, for a new NOT NULL column that has no value in existing rows.
pub(super) fn required_checks(alteration: &Alteration<'_>) -> SqlResult<Vec<NoRowCheck>> {
    let mut checks = Vec::new();
    let is_known = |constraint: &&Constraint| alteration.old.constraints.iter().any(|old| old.oid == constraint.oid);
    let were_held =
        |held: &&Constraint| alteration.old.constraints.iter().any(|old| old.oid == held.oid && old.enforced);
    // Rows that get values for new columns are checked against these columns' constraints while they are updated.
    let is_filled =
        |it: &&Constraint| it.kind.columns().iter().any(|column| alteration.filled_columns.contains(column));
    let constraints = || alteration.table.constraints.iter().filter(|it| !is_filled(it));
    for added in constraints().filter(|added| added.enforced && !were_held(added)) {
        checks.extend(key_check::constraint_check(
            alteration.binder,
            &context_after(alteration)?,
            &alteration.table,
            added,
        )?);
    }
    if !alteration.has_rows() {
        return Ok(checks);
    }
    for column in alteration.table.columns.iter().filter(|column| column.not_null) {
        match alteration.old.column(column.id) {
            Some(old) if old.not_null => {}
            Some(old) => checks.extend(not_null_check(alteration, old, column)?),
            None if column.missing.is_some() => {}
            None => return Err(null_violation(alteration, column)),
        }
    }
    for constraint in constraints().filter(|constraint| !is_known(constraint)) {
        if let ConstraintKind::Check { expression, .. } = &constraint.kind {
            checks.push(check_constraint_query(alteration, constraint, expression)?);
        }
    }
    Ok(checks)
}

/// Plans the update that writes the values of new columns into existing rows.
pub(super) fn plan_fill(alteration: &Alteration<'_>) -> SqlResult<Box<ModifyPlan>> {
    let context = context_after(alteration)?;
    let binder = Binder::new(alteration.binder.environment(), &context);
    let columns = alteration.filled_columns.iter().filter_map(|id| alteration.table.column(*id));
    let assignments = columns.map(|column| Assignment {
        columns: vec![Ident::with_quote('"', &column.name)],
        value: AssignedValue::Single(Box::new(Expr::Identifier(Ident::new("default")))),
    });
    let name = name_resolution::qualified(schema_name(alteration), &alteration.table.name);
    let update = Update {
        with: None,
        target: ModifiedTable { name, alias: None },
        assignments: assignments.collect(),
        from: Vec::new(),
        condition: None,
        returning: None,
    };
    write::plan_update(&binder, &update, &[]).map(Box::new)
}

/// Checks that no row has NULL in the column; no query is needed if the shards' statistics count no NULLs.
fn not_null_check(alteration: &Alteration<'_>, old: &Column, column: &Column) -> SqlResult<Option<NoRowCheck>> {
    let context = alteration.context();
    let rows = context.snapshot.rows(alteration.old.oid);
    if rows.fresh.is_empty() && rows.own_rows.is_empty() && rows.shards.summary(old).nulls == 0 {
        return Ok(None);
    }
    let condition = format!("{} IS NULL", name_resolution::ident(&old.name));
    let query = plan_row_query(alteration, context, &alteration.old.name, &condition)?;
    Ok(Some(NoRowCheck { query, violation: null_violation(alteration, column) }))
}

fn check_constraint_query(
    alteration: &Alteration<'_>,
    constraint: &Constraint,
    expression: &str,
) -> SqlResult<NoRowCheck> {
    let query = plan_row_query(
        alteration,
        &context_after(alteration)?,
        &alteration.table.name,
        &format!("NOT ({expression})"),
    )?;
    let message = format!(
        "check constraint \"{}\" of relation \"{}\" is violated by some row",
        constraint.name, alteration.table.name
    );
    let violation = SqlError::new(Condition::CheckViolation, message)
        .with_table(schema_name(alteration), &alteration.table.name)
        .with_constraint(&constraint.name);
    Ok(NoRowCheck { query, violation })
}

/// Returns the context of a statement after the alteration.
fn context_after(alteration: &Alteration<'_>) -> SqlResult<Arc<StatementContext>> {
    let context = alteration.context();
    let mut snapshot = catalog::CatalogState::clone(&context.snapshot);
    let altered = Change::PutTable(Arc::new(alteration.table.clone()));
    for change in alteration.changes_before.iter().chain([&altered]) {
        snapshot = snapshot.apply(change).map_err(|error| SqlError::internal(error.to_string()))?;
    }
    Ok(Arc::new(StatementContext { snapshot: Arc::new(snapshot), ..StatementContext::clone(context) }))
}

/// Plans a query for one row that satisfies `condition`; `table` is the table's name in `context`.
fn plan_row_query(
    alteration: &Alteration<'_>,
    context: &Arc<StatementContext>,
    table: &str,
    condition: &str,
) -> SqlResult<QueryPlan> {
    let table = name_resolution::qualified(schema_name(alteration), table);
    key_check::plan_query(alteration.binder, context, &format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1"))
}

/// Returns the type of an expression over the existing rows.
pub(super) fn expression_type(alteration: &Alteration<'_>, expression: &Expr) -> SqlResult<SqlType> {
    let table = name_resolution::qualified(schema_name(alteration), &alteration.old.name);
    let plan =
        key_check::plan_query(alteration.binder, alteration.context(), &format!("SELECT {expression} FROM {table}"))?;
    let column = plan.columns.into_iter().next();
    column.map(|column| column.sql_type).ok_or_else(|| {
        SqlError::internal("the query that determines the type of an ALTER COLUMN USING expression has no column")
    })
}

fn schema_name<'a>(alteration: &'a Alteration<'_>) -> &'a str {
    alteration.context().snapshot.schema(alteration.old.schema).map_or("", |schema| schema.name.as_str())
}

fn null_violation(alteration: &Alteration<'_>, column: &Column) -> SqlError {
    let message = format!("column \"{}\" of relation \"{}\" contains null values", column.name, alteration.table.name);
    SqlError::new(Condition::NotNullViolation, message)
        .with_table(schema_name(alteration), &alteration.table.name)
        .with_column(&column.name)
}
