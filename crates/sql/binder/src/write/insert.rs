//! Planning of INSERT.

use std::sync::Arc;

use catalog::Table;
use datafusion::sql::sqlparser::ast::{Ident, Query, SelectItem, SetExpr};
use syntax::statement::{Insert, InsertSource};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::target::WriteTarget;
use super::{complete_rows, identity_values, insert_values, new_rows, on_conflict, referential_actions};
use crate::bind::{Binder, resolved_types};
use crate::statement_plan::{ConflictPlan, WritePlan};

/// Plans an INSERT. `declared` are the parameter types declared by the client.
///
/// # Errors
/// SQLSTATE 42P01, 42703 and 42701 for wrong names, 42601 for a wrong number of values, 42804 for a type without an
/// assignment cast, 42P10 for ON CONFLICT without an enforced key, 42501 without the privilege; errors of the query.
pub fn plan_insert(binder: &Binder<'_>, insert: &Insert, declared: &[Option<SqlType>]) -> SqlResult<WritePlan> {
    let target = WriteTarget::resolve(binder, &insert.table, "insert into")?;
    let table = &target.table;
    let columns = column_positions(table, &insert.columns)?;
    let arbiters = insert.on_conflict.as_ref().map(|it| on_conflict::arbiters(table, it)).transpose()?;
    let is_named = !insert.columns.is_empty();
    let (source, filled, parameters) = match &insert.source {
        InsertSource::DefaultValues => (insert_values::one_row(), Vec::new(), Vec::new()),
        InsertSource::Query(query) => match insert_values::values_rows(query) {
            Some(written) => {
                let rows = insert_values::plan_values(
                    binder,
                    table,
                    &columns,
                    is_named,
                    &written,
                    declared,
                    insert.overriding,
                )?;
                (rows.plan, rows.filled, rows.parameters)
            }
            None => {
                let declared = infer_item_types(query, table, &columns, declared);
                let bound = binder.plan_query_part(query, &declared)?;
                let filled = insert_values::filled_positions(&columns, bound.columns.len(), is_named)?;
                let filled = identity_values::filled_positions(table, filled, insert.overriding)?;
                (bound.plan, filled, bound.parameters)
            }
        },
    };
    let rows = complete_rows::complete_rows(binder, &target, source, &filled)?;
    let with = match &insert.source {
        InsertSource::Query(query) => query.with.as_ref(),
        InsertSource::DefaultValues => None,
    };
    let (alias, returning) = (insert.alias.as_ref(), insert.returning.as_ref());
    // Parameter types left open by one part of the statement may be inferred by a later one.
    let mut known: Vec<Option<SqlType>> = parameters.iter().cloned().map(Some).collect();
    let written = insert.on_conflict.as_ref().and_then(|on_conflict| on_conflict.update.as_ref());
    let update =
        written.map(|written| on_conflict::plan_update(binder, &target, alias, with, written, returning, &known));
    let mut update = update.transpose()?;
    if let Some(update) = &update {
        known = update.plan.parameters.iter().cloned().map(Some).collect();
    }
    let (mut input, returning) = match returning {
        None => (complete_rows::write_input(binder, table, rows, parameters), None),
        Some(returning) => {
            let (made, changed) = (new_rows::with_null_old_values(&target, rows)?, target.with_alias(alias));
            let (input, returning) =
                binder.plan_insert_returning(with, &changed, returning, &made, &known, &target.column_names())?;
            known = input.parameters.iter().cloned().map(Some).collect();
            (input, returning)
        }
    };
    input.parameters = resolved_types(known)?;
    if let Some(update) = &mut update {
        update.plan.parameters.clone_from(&input.parameters);
    }
    let referred = update.as_ref().map_or(&[][..], |update| update.old_columns.as_slice());
    let references = referential_actions::plan_referential_actions(binder, table, referred)?;
    Ok(WritePlan {
        table: Arc::clone(table),
        changes_before: Vec::new(),
        input: Some(input),
        command_tag: "INSERT",
        notices: Vec::new(),
        returning,
        conflict: arbiters
            .filter(|arbiters| !arbiters.is_empty())
            .map(|arbiters| Box::new(ConflictPlan { arbiters, update, references })),
    })
}

/// Returns the positions of the named columns in the table; all positions if none is named.
///
/// # Errors
/// SQLSTATE 42703 for an unknown name, 42701 for a repeated one.
pub(super) fn column_positions(table: &Table, names: &[Ident]) -> SqlResult<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..table.columns.len()).collect());
    }
    let mut positions = Vec::with_capacity(names.len());
    for name in names {
        let (position, _) = table.column_by_name(&name.value).ok_or_else(|| {
            let message = format!("column \"{}\" of relation \"{}\" does not exist", name.value, table.name);
            SqlError::new(Condition::UndefinedColumn, message)
        })?;
        if positions.contains(&position) {
            let message = format!("column \"{}\" specified more than once", name.value);
            return Err(SqlError::new(Condition::DuplicateColumn, message));
        }
        positions.push(position);
    }
    Ok(positions)
}

/// Infers the types of parameters that are items of the SELECT list from the columns they fill.
fn infer_item_types(
    query: &Query,
    table: &Table,
    columns: &[usize],
    declared: &[Option<SqlType>],
) -> Vec<Option<SqlType>> {
    let mut types = declared.to_vec();
    if let SetExpr::Select(select) = query.body.as_ref() {
        for (item, position) in select.projection.iter().zip(columns) {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                insert_values::infer_parameter_type(expr, &table.columns[*position].sql_type, &mut types);
            }
        }
    }
    types
}
