//! CREATE EXTERNAL TABLE: tables over files that other systems write.

use std::sync::Arc;

use binder::{Binder, DefinePlan};
use catalog::{Change, Column, External};
use session_context::{FileColumn, StatementContext};
use shards::external::conversion;
use syntax::statement::{ColumnConstraintKind, ColumnDefinition, CreateExternalTable};
use types::{ColumnId, Condition, SqlError, SqlResult, SqlType};

use super::create_table::{already_exists_notice, new_table};
use super::{column_definition, name_resolution};

/// Creates a table over the files at a location, with the listed columns or those of the files.
///
/// # Errors
/// `42501` without the right to read files of the server, `42602` for a relative path, `42P07` for an existing name,
/// `0A000` for types that files cannot have, and errors of the columns.
pub fn create_external_table(binder: &Binder<'_>, create: &CreateExternalTable) -> SqlResult<DefinePlan> {
    let context = binder.context();
    check_can_read_files(context)?;
    let name_resolution::CreationTarget { schema, name, temporary, .. } =
        name_resolution::creation_target(context, &create.name, false)?;
    if temporary {
        return Err(SqlError::unsupported("a temporary external table"));
    }
    let mut plan = DefinePlan { command_tag: "CREATE EXTERNAL TABLE".to_owned(), ..DefinePlan::default() };
    if name_resolution::find_relation_in(&context.snapshot, &schema.name, name).is_some() {
        if !create.if_not_exists {
            return Err(name_resolution::duplicate_relation(name));
        }
        plan.notices.push(already_exists_notice(name));
        return Ok(plan);
    }
    let location = create.location.clone();
    if !is_absolute(&location) {
        return Err(SqlError::new(Condition::InvalidName, "relative path not allowed for LOCATION"));
    }
    let columns = if create.columns.is_empty() {
        context.inputs.columns_at(&location)?.iter().map(column_from_file).collect()
    } else {
        create.columns.iter().map(|written| declared_column(binder, name, written)).collect::<SqlResult<_>>()?
    };
    let mut table = new_table(binder, &schema, name, columns)?;
    table.external = Some(External { location });
    plan.changes.push(Change::PutTable(Arc::new(table)));
    Ok(plan)
}

/// Returns the location whose files define the columns, if the statement lists none and passes the checks before them.
#[must_use]
pub fn location_to_read<'c>(context: &StatementContext, create: &'c CreateExternalTable) -> Option<&'c str> {
    let may_be_created = check_can_read_files(context).is_ok()
        && name_resolution::creation_target(context, &create.name, false).is_ok_and(|target| {
            !target.temporary
                && name_resolution::find_relation_in(&context.snapshot, &target.schema.name, target.name).is_none()
        });
    let is_read = may_be_created && create.columns.is_empty() && is_absolute(&create.location);
    is_read.then_some(create.location.as_str())
}

fn is_absolute(location: &str) -> bool {
    location.starts_with('/') || location.contains("://")
}

/// Checks the right to read files of the server, as COPY from a file does.
fn check_can_read_files(context: &StatementContext) -> SqlResult<()> {
    if context.role.superuser {
        return Ok(());
    }
    let detail =
        "Only roles with privileges of the \"pg_read_server_files\" role may create one: here, superusers.".to_owned();
    Err(SqlError::new(Condition::InsufficientPrivilege, "permission denied to create an external table")
        .with_detail(detail))
}

/// Builds a column from one of the files. It is nullable, because later files may have NULLs.
fn column_from_file(found: &FileColumn) -> Column {
    Column {
        id: ColumnId(0),
        name: found.name.clone(),
        sql_type: found.sql_type.clone(),
        not_null: false,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    }
}

fn declared_column(binder: &Binder<'_>, table: &str, written: &ColumnDefinition) -> SqlResult<Column> {
    let is_plain =
        |kind: &ColumnConstraintKind| matches!(kind, ColumnConstraintKind::Null | ColumnConstraintKind::NotNull);
    if written.constraints.iter().any(|constraint| !is_plain(&constraint.kind)) {
        let message = "columns of external tables have no defaults and no constraints but NOT NULL";
        return Err(SqlError::new(Condition::WrongObjectType, message).with_column(&written.name.value));
    }
    let column_definition::NewColumn { column, sequence } = column_definition::build_column(binder, table, written)?;
    if sequence.is_some() {
        return Err(unsupported_type(&column.name, "serial"));
    }
    if !conversion::is_supported(&column.sql_type) {
        let refused = unsupported_type(&column.name, &column.sql_type.to_string());
        let is_text =
            matches!(column.sql_type, SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Json | SqlType::Jsonb);
        return Err(if is_text { refused.with_hint("Declare it as text.") } else { refused });
    }
    Ok(column)
}

fn unsupported_type(column: &str, type_name: &str) -> SqlError {
    SqlError::unsupported(format_args!("the type {type_name} in an external table")).with_column(column)
}
