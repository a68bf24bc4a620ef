//! ON CONFLICT: the arbiter keys, and DO UPDATE.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use catalog::Table;
use datafusion::sql::sqlparser::ast::{Ident, With};
use plan::{ROW_ID, ROW_POSITION, StreamTable, schema_of};
use syntax::statement::{ConflictTarget, ConflictUpdate as Written, OnConflict, Returning};
use types::{ColumnId, Condition, Oid, SqlError, SqlResult, SqlType};

use super::new_rows::{RowsRead, plan_columns, positions_of};
use super::set_clause::SetClause;
use super::target::WriteTarget;
use crate::bind::Binder;
use crate::bind::modification::{Clause, Modification, ModificationSource, ReturningRow};
use crate::bind::modification_columns::ModificationColumns;
use crate::statement_plan::{Action, ConflictUpdate};

/// Returns the arbiter keys, whose violation is the conflict; none for DO NOTHING on a table without keys.
///
/// # Errors
/// SQLSTATE 42P10 if no enforced key matches, 42703 and 42704 for wrong names, 42601 for DO UPDATE without a target.
pub(super) fn arbiters(table: &Table, on_conflict: &OnConflict) -> SqlResult<Vec<Oid>> {
    let keys = unique_keys(table);
    match &on_conflict.target {
        None if on_conflict.update.is_some() => {
            let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            Err(SqlError::new(Condition::SyntaxError, message).with_hint("For example, ON CONFLICT (column_name)."))
        }
        None => {
            let has_declared = table.constraints.iter().any(|constraint| constraint.kind.is_key());
            if keys.is_empty() && has_declared {
                Err(no_matching_key_error(table))
            } else {
                Ok(keys.iter().map(|(oid, _)| *oid).collect())
            }
        }
        Some(ConflictTarget::Columns(names)) => {
            let columns = columns_of(table, names)?;
            let is_meant = |key: &[ColumnId]| {
                key.iter().all(|id| columns.contains(id)) && columns.iter().all(|id| key.contains(id))
            };
            let found: Vec<Oid> = keys.iter().filter(|(_, key)| is_meant(key)).map(|(oid, _)| *oid).collect();
            if found.is_empty() { Err(no_matching_key_error(table)) } else { Ok(found) }
        }
        Some(ConflictTarget::Constraint(name)) => {
            let found = table.constraints.iter().find(|constraint| constraint.name == name.value).ok_or_else(|| {
                let message = format!("constraint \"{}\" for table \"{}\" does not exist", name.value, table.name);
                SqlError::new(Condition::UndefinedObject, message)
            })?;
            if !found.kind.is_key() {
                let message = "constraint in ON CONFLICT clause has no associated index";
                return Err(SqlError::new(Condition::WrongObjectType, message));
            }
            if found.enforced { Ok(vec![found.oid]) } else { Err(no_matching_key_error(table)) }
        }
    }
}

/// Returns the enforced unique keys.
fn unique_keys(table: &Table) -> Vec<(Oid, &[ColumnId])> {
    let constraints = table.constraints.iter().filter(|constraint| constraint.enforced && constraint.kind.is_key());
    let indexes = table.indexes.iter().filter(|index| index.unique);
    let of_constraints = constraints.map(|constraint| (constraint.oid, constraint.kind.columns()));
    of_constraints.chain(indexes.map(|index| (index.oid, index.columns.as_slice()))).collect()
}

fn columns_of(table: &Table, names: &[Ident]) -> SqlResult<Vec<ColumnId>> {
    let id = |name: &Ident| {
        table.column_by_name(&name.value).map(|(_, column)| column.id).ok_or_else(|| {
            SqlError::new(Condition::UndefinedColumn, format!("column \"{}\" does not exist", name.value))
        })
    };
    names.iter().map(id).collect()
}

fn no_matching_key_error(table: &Table) -> SqlError {
    let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
    let error = SqlError::new(Condition::InvalidColumnReference, message);
    let is_declared = table.constraints.iter().any(|constraint| constraint.kind.is_key() && !constraint.enforced);
    if is_declared {
        error.with_detail("Primary keys and unique constraints are declared but not enforced.")
    } else {
        error
    }
}

/// Plans DO UPDATE, over existing rows and the rows proposed for insertion.
pub(super) fn plan_update(
    binder: &Binder<'_>,
    target: &WriteTarget,
    alias: Option<&Ident>,
    with: Option<&With>,
    written: &Written,
    returning: Option<&Returning>,
    declared: &[Option<SqlType>],
) -> SqlResult<ConflictUpdate> {
    let mut declared = declared.to_vec();
    let assigned = SetClause::resolve(&target.table, &written.assignments, 0, &mut declared)?;
    let input = StreamTable::new(Arc::new(conflicting_row_schema(&target.table)));
    let bound = binder.resolve_modification(Modification {
        with,
        target: target.with_alias(alias),
        source: ModificationSource::Conflicting(&input),
        condition: written.condition.as_ref(),
        values: assigned.values.iter().cloned().map(|value| value.into_written(Clause::Update)).collect(),
        merge: None,
        returning,
        returning_row: ReturningRow::New,
    })?;
    let mut old = target.referenced_columns(binder);
    old.retain(|id| target.table.columns.iter().zip(0..).any(|(column, at)| column.id == *id && assigned.sets(at)));
    let columns = plan_columns(target, &positions_of(target, &old));
    let (plan, _) = binder.plan_modification(&bound, &declared, &columns, |plan| {
        let read = RowsRead::new(binder, target, plan, bound.other_column_count)?;
        let new = assigned.columns.iter().enumerate().map(|(at, new)| read.new_value(at, *new));
        let new = new.collect::<SqlResult<Vec<_>>>()?;
        read.with_action(Action::Update, new)
    })?;
    Ok(ConflictUpdate { plan, input, old_columns: old })
}

/// Returns the schema of an existing row followed by the row proposed for insertion.
fn conflicting_row_schema(table: &Table) -> Schema {
    let place = |name| Arc::new(SqlType::Int8.arrow_field(name, false));
    let there = schema_of(&table.columns);
    let inserted = there.fields().iter().enumerate();
    let names = ModificationColumns::for_table(table);
    let inserted = inserted.map(|(at, field)| Arc::new(Field::clone(field).with_name(names.other(at))));
    Schema::new(
        [ROW_ID, ROW_POSITION]
            .map(place)
            .into_iter()
            .chain(there.fields().iter().cloned())
            .chain(inserted)
            .collect::<Vec<_>>(),
    )
}
