//! Constraints of a table that is created or altered: names, columns and referenced keys.

use std::sync::Arc;

use binder::Binder;
use catalog::{Column, Constraint, ConstraintKind, ReferentialAction, Storage, Table};
use datafusion::sql::sqlparser::ast::{self, Expr, Ident};
use syntax::statement::{ColumnConstraint, ColumnConstraintKind, References, TableConstraint, TableConstraintKind};
use syntax::to_sql_text;
use types::{ColumnId, Condition, SqlError, SqlResult, SqlType};

use super::constraint_name::{choose_name, is_relation};
use super::key_type::{has_order, keys_match, unordered_type};
use super::name_resolution::{self, ResolvedRelation};

/// Converts a column constraint to a table constraint; `None` for kinds that are properties of the column.
pub(super) fn from_column_constraint(column: &Ident, written: &ColumnConstraint) -> Option<TableConstraint> {
    let columns = || vec![column.clone()];
    let kind = match &written.kind {
        ColumnConstraintKind::Null
        | ColumnConstraintKind::NotNull
        | ColumnConstraintKind::Default(_)
        | ColumnConstraintKind::Identity(_) => return None,
        ColumnConstraintKind::Check(expression) => TableConstraintKind::Check(expression.clone()),
        ColumnConstraintKind::PrimaryKey => TableConstraintKind::PrimaryKey(columns()),
        ColumnConstraintKind::Unique => TableConstraintKind::Unique(columns()),
        ColumnConstraintKind::References(references) => {
            TableConstraintKind::ForeignKey { columns: columns(), references: references.clone() }
        }
    };
    Some(TableConstraint { name: written.name.clone(), kind, enforced: written.enforced })
}

/// Adds constraints to `table`, in PostgreSQL's order: checks, keys, foreign keys. A primary key makes its columns NOT
/// NULL.
///
/// # Errors
/// `42710` or `42P07` for an existing name, `42703` for an unknown column, `42P16` for a second primary key, and errors
/// of an expression or a foreign key.
pub(super) fn add_constraints(
    binder: &Binder<'_>,
    table: &mut Table,
    constraints: &[TableConstraint],
) -> SqlResult<()> {
    let rank = |constraint: &&TableConstraint| match &constraint.kind {
        TableConstraintKind::Check(_) => 0,
        TableConstraintKind::PrimaryKey(_) => 1,
        TableConstraintKind::Unique(_) => 2,
        TableConstraintKind::ForeignKey { .. } => 3,
    };
    let mut ordered: Vec<&TableConstraint> = constraints.iter().collect();
    ordered.sort_by_key(rank);
    let first_new = table.constraints.len();
    for constraint in ordered {
        refuse_duplicate(table, first_new, constraint)?;
        let added = build_constraint(binder, table, constraint)?;
        table.constraints.push(added);
    }
    Ok(())
}

fn build_constraint(binder: &Binder<'_>, table: &mut Table, constraint: &TableConstraint) -> SqlResult<Constraint> {
    let state = &binder.context().snapshot;
    let enforced = is_enforced(table, constraint);
    let (kind, suggestion) = match &constraint.kind {
        TableConstraintKind::Check(expression) => build_check(binder, table, expression)?,
        TableConstraintKind::PrimaryKey(columns) => {
            if table.primary_key().is_some() {
                let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
                return Err(SqlError::new(Condition::InvalidTableDefinition, message));
            }
            let columns = key_columns(table, columns, "primary key")?;
            for column in table.columns.iter_mut().filter(|column| columns.contains(&column.id)) {
                column.not_null = true;
            }
            (ConstraintKind::PrimaryKey { columns }, (None, "pkey"))
        }
        TableConstraintKind::Unique(columns) => {
            let suggestion = join_names(columns);
            (ConstraintKind::Unique { columns: key_columns(table, columns, "unique")? }, (Some(suggestion), "key"))
        }
        TableConstraintKind::ForeignKey { columns, references } => {
            let suggestion = join_names(columns);
            (build_foreign_key(binder, table, columns, references, enforced)?, (Some(suggestion), "fkey"))
        }
    };
    let name = match &constraint.name {
        Some(name) => {
            if kind.is_key() && is_relation(state, table, &name.value) {
                return Err(name_resolution::duplicate_relation(&name.value));
            }
            name.value.clone()
        }
        None => choose_name(state, table, suggestion.0.as_deref(), suggestion.1, kind.is_key()),
    };
    Ok(Constraint { oid: (binder.context().new_oid)(), name, kind, enforced, comment: None })
}

/// Whether the constraint is enforced; by default CHECKs are, and all constraints of tables with row storage.
fn is_enforced(table: &Table, constraint: &TableConstraint) -> bool {
    let is_check = matches!(constraint.kind, TableConstraintKind::Check(_));
    is_check || constraint.enforced.unwrap_or(table.storage == Storage::Row)
}

/// Refuses a second constraint of the same name (`42710`); those from `first_new` on come from the same statement.
fn refuse_duplicate(table: &Table, first_new: usize, constraint: &TableConstraint) -> SqlResult<()> {
    let Some(name) = constraint.name.as_ref().map(|name| &name.value) else { return Ok(()) };
    let Some(known) = table.constraints.iter().position(|known| known.name == *name) else { return Ok(()) };
    if known >= first_new && matches!(constraint.kind, TableConstraintKind::Check(_)) {
        let message = format!("check constraint \"{name}\" already exists");
        return Err(SqlError::new(Condition::DuplicateObject, message));
    }
    Err(duplicate_constraint(name, &table.name))
}

/// Returns the error for an existing constraint name (`42710`).
pub(super) fn duplicate_constraint(constraint: &str, table: &str) -> SqlError {
    let message = format!("constraint \"{constraint}\" for relation \"{table}\" already exists");
    SqlError::new(Condition::DuplicateObject, message)
}

type DefaultNameParts = (Option<String>, &'static str);

/// Binds a CHECK; returns it with the parts of its default name: the column, if it uses exactly one, and the label.
fn build_check(binder: &Binder<'_>, table: &Table, expression: &Expr) -> SqlResult<(ConstraintKind, DefaultNameParts)> {
    let bound = binder.bind_column_expression(expression, &table.columns, &SqlType::Bool)?;
    let used = bound.column_refs();
    let uses = |column: &&Column| used.iter().any(|reference| reference.name == column.name);
    let columns: Vec<&Column> = table.columns.iter().filter(uses).collect();
    let suggestion = match columns.as_slice() {
        [only] => Some(only.name.clone()),
        _ => None,
    };
    let columns = columns.iter().map(|column| column.id).collect();
    Ok((ConstraintKind::Check { expression: to_sql_text(expression), columns }, (suggestion, "check")))
}

fn key_columns(table: &Table, names: &[Ident], what: &str) -> SqlResult<Vec<ColumnId>> {
    let mut ids: Vec<ColumnId> = Vec::with_capacity(names.len());
    for name in names {
        let (_, column) = table.column_by_name(&name.value).ok_or_else(|| {
            let message = format!("column \"{}\" named in key does not exist", name.value);
            SqlError::new(Condition::UndefinedColumn, message)
        })?;
        if ids.contains(&column.id) {
            let message = format!("column \"{}\" appears twice in {what} constraint", name.value);
            return Err(SqlError::new(Condition::DuplicateColumn, message));
        }
        if !has_order(&column.sql_type) {
            return Err(unordered_type(&column.sql_type));
        }
        ids.push(column.id);
    }
    Ok(ids)
}

fn build_foreign_key(
    binder: &Binder<'_>,
    table: &Table,
    columns: &[Ident],
    references: &References,
    enforced: bool,
) -> SqlResult<ConstraintKind> {
    let target = referenced_table(binder, table, references)?;
    let target = target.as_deref().unwrap_or(table);
    refuse_mixed_persistence(table, target)?;
    let referencing =
        columns.iter().map(|name| referencing_column(table, name)).collect::<SqlResult<Vec<&Column>>>()?;
    let referenced = if references.columns.is_empty() {
        primary_key(target)?
    } else {
        let named = references.columns.iter().map(|name| referencing_column(target, name));
        named.collect::<SqlResult<Vec<&Column>>>()?
    };
    let ids = |columns: &[&Column]| columns.iter().map(|column| column.id).collect::<Vec<ColumnId>>();
    let referenced_ids = ids(&referenced);
    if (1..referenced_ids.len()).any(|index| referenced_ids[..index].contains(&referenced_ids[index])) {
        let message = "foreign key referenced-columns list must not contain duplicates";
        return Err(SqlError::new(Condition::InvalidForeignKey, message));
    }
    let is_declared =
        target.constraints.iter().any(|it| it.kind.is_key() && is_same_column_set(it.kind.columns(), &referenced_ids));
    let has_key = has_enforced_key(target, &referenced_ids);
    if is_declared && enforced && !has_key {
        return Err(key_not_enforced(target));
    }
    if !is_declared && !has_key {
        return Err(missing_unique_key(target));
    }
    if referencing.len() != referenced.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(SqlError::new(Condition::InvalidForeignKey, message));
    }
    if let Some((own, other)) =
        referencing.iter().zip(&referenced).find(|(own, other)| !keys_match(&other.sql_type, &own.sql_type))
    {
        let name = choose_name(&binder.context().snapshot, table, Some(&join_names(columns)), "fkey", false);
        let detail = format!(
            "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
            own.name, other.name, own.sql_type, other.sql_type
        );
        let message = format!("foreign key constraint \"{name}\" cannot be implemented");
        return Err(SqlError::new(Condition::DatatypeMismatch, message).with_detail(detail));
    }
    let (on_update, on_delete) = (referential_action(references.on_update), referential_action(references.on_delete));
    let ids_of_own = ids(&referencing);
    let mut delete_columns = Vec::with_capacity(references.delete_columns.len());
    for name in &references.delete_columns {
        let column = referencing_column(table, name)?.id;
        if !ids_of_own.contains(&column) {
            let message =
                format!("column \"{}\" referenced in ON DELETE SET action must be part of foreign key", name.value);
            return Err(SqlError::new(Condition::InvalidColumnReference, message));
        }
        delete_columns.push(column);
    }
    Ok(ConstraintKind::ForeignKey {
        columns: ids_of_own,
        references: target.oid,
        referenced: referenced_ids,
        on_update,
        on_delete,
        delete_columns,
    })
}

/// Refuses foreign keys between permanent and temporary tables (`42P16`).
fn refuse_mixed_persistence(table: &Table, target: &Table) -> SqlResult<()> {
    let message = match (table.temporary.is_some(), target.temporary.is_some()) {
        (false, true) => "constraints on permanent tables may reference only permanent tables",
        (true, false) => "constraints on temporary tables may reference only temporary tables",
        _ => return Ok(()),
    };
    Err(SqlError::new(Condition::InvalidTableDefinition, message))
}

/// Whether an enforced key or unique index guarantees that no two rows share these columns.
pub(super) fn has_enforced_key(table: &Table, columns: &[ColumnId]) -> bool {
    let keys = table.constraints.iter().filter(|it| it.enforced && it.kind.is_key()).map(|it| it.kind.columns());
    let indexes = table.indexes.iter().filter(|index| index.unique).map(|index| index.columns.as_slice());
    keys.chain(indexes).any(|key| is_same_column_set(key, columns))
}

fn is_same_column_set(key: &[ColumnId], columns: &[ColumnId]) -> bool {
    key.len() == columns.len() && key.iter().all(|id| columns.contains(id))
}

fn missing_unique_key(table: &Table) -> SqlError {
    let message = format!("there is no unique constraint matching given keys for referenced table \"{}\"", table.name);
    SqlError::new(Condition::InvalidForeignKey, message)
}

/// Returns the error for an enforced foreign key to a key that is not enforced (`42830`).
pub(super) fn key_not_enforced(table: &Table) -> SqlError {
    missing_unique_key(table)
        .with_detail("The referenced key is declared but not enforced, and the foreign key is to be enforced.")
}

/// Resolves the table that a foreign key refers to; `None` if it is `table` itself.
fn referenced_table(binder: &Binder<'_>, table: &Table, references: &References) -> SqlResult<Option<Arc<Table>>> {
    let context = binder.context();
    let name = &references.table;
    let (schema, bare) = name_resolution::split_name(context, name)?;
    let own_schema = context.snapshot.schema(table.schema).map(|schema| schema.name.as_str());
    let is_own = bare == table.name && schema.is_none_or(|schema| Some(schema) == own_schema);
    match name_resolution::resolve_relation(context, name)? {
        Some(ResolvedRelation::Table(found)) if found.oid == table.oid => Ok(None),
        // A new table that refers to itself is not in the catalog yet, unless its name resolves to another table.
        None if is_own => Ok(None),
        Some(ResolvedRelation::Table(found)) => {
            if !context.owns(found.owner) {
                let message = format!("permission denied for table {}", found.name);
                return Err(SqlError::new(Condition::InsufficientPrivilege, message));
            }
            Ok(Some(found))
        }
        Some(ResolvedRelation::SystemTable) => Err(name_resolution::system_table_error(name)),
        Some(
            ResolvedRelation::External(_)
            | ResolvedRelation::View(_)
            | ResolvedRelation::Sequence(_)
            | ResolvedRelation::Key
            | ResolvedRelation::Index(..),
        ) => {
            let message = format!("referenced relation \"{bare}\" is not a table");
            Err(SqlError::new(Condition::WrongObjectType, message))
        }
        None => Err(name_resolution::undefined_relation(name)),
    }
}

fn referencing_column<'t>(table: &'t Table, name: &Ident) -> SqlResult<&'t Column> {
    let found = table.column_by_name(&name.value).map(|(_, column)| column);
    found.ok_or_else(|| {
        let message = format!("column \"{}\" referenced in foreign key constraint does not exist", name.value);
        SqlError::new(Condition::UndefinedColumn, message)
    })
}

fn primary_key(table: &Table) -> SqlResult<Vec<&Column>> {
    let key = table.primary_key().ok_or_else(|| {
        let message = format!("there is no primary key for referenced table \"{}\"", table.name);
        SqlError::new(Condition::UndefinedObject, message)
    })?;
    Ok(key.iter().filter_map(|id| table.column(*id)).collect())
}

fn referential_action(written: Option<ast::ReferentialAction>) -> ReferentialAction {
    match written {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

fn join_names(columns: &[Ident]) -> String {
    columns.iter().map(|column| column.value.as_str()).collect::<Vec<_>>().join("_")
}
