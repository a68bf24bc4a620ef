//! CREATE EXTERNAL TABLE: tables over files that other systems write.

use std::sync::Arc;

use binder::{Binder, DefinePlan};
use catalog::{Change, Column, External};
use session_context::{FileColumn, StatementContext};
use shards::foreign::fit;
use syntax::statement::{ColumnConstraintKind, ColumnDefinition, CreateExternalTable};
use types::{ColumnId, Condition, SqlError, SqlResult, SqlType};

use super::create_table::{already_exists, new_table};
use super::{column, name};

/// Creates a table over the files at a location, with the listed columns or those of the files.
///
/// # Errors
/// `42501` without the right to read files of the server, `42602` for a relative path, `42P07` for an existing name,
/// `0A000` for types that files cannot have, and errors of the columns.
pub fn create_external_table(binder: &Binder<'_>, create: &CreateExternalTable) -> SqlResult<DefinePlan> {
    let context = binder.context();
    may_read_files(context)?;
    let name::Target { schema, name, temporary, .. } = name::target(context, &create.name, false)?;
    if temporary {
        return Err(SqlError::unsupported("a temporary external table"));
    }
    let mut plan = DefinePlan { tag: "CREATE EXTERNAL TABLE".to_owned(), ..DefinePlan::default() };
    if name::find_in(&context.snapshot, &schema.name, name).is_some() {
        if !create.if_not_exists {
            return Err(name::taken(name));
        }
        plan.notices.push(already_exists(name));
        return Ok(plan);
    }
    let location = create.location.clone();
    if !is_absolute(&location) {
        return Err(SqlError::new(Condition::InvalidName, "relative path not allowed for LOCATION"));
    }
    let columns = if create.columns.is_empty() {
        context.inputs.columns_at(&location)?.iter().map(found_column).collect()
    } else {
        create.columns.iter().map(|written| written_column(binder, name, written)).collect::<SqlResult<_>>()?
    };
    let mut table = new_table(binder, &schema, name, columns)?;
    table.external = Some(External { location });
    plan.changes.push(Change::PutTable(Arc::new(table)));
    Ok(plan)
}

/// Returns the location whose files define the columns, if the statement lists none and passes the checks before them.
#[must_use]
pub fn location_to_read<'c>(context: &StatementContext, create: &'c CreateExternalTable) -> Option<&'c str> {
    let may_be_created = may_read_files(context).is_ok()
        && name::target(context, &create.name, false).is_ok_and(|target| {
            !target.temporary && name::find_in(&context.snapshot, &target.schema.name, target.name).is_none()
        });
    let is_read = may_be_created && create.columns.is_empty() && is_absolute(&create.location);
    is_read.then_some(create.location.as_str())
}

fn is_absolute(location: &str) -> bool {
    location.starts_with('/') || location.contains("://")
}

/// Checks the right to read files of the server, as COPY from a file does.
fn may_read_files(context: &StatementContext) -> SqlResult<()> {
    if context.role.superuser {
        return Ok(());
    }
    let detail =
        "Only roles with privileges of the \"pg_read_server_files\" role may create one: here, superusers.".to_owned();
    Err(SqlError::new(Condition::InsufficientPrivilege, "permission denied to create an external table")
        .with_detail(detail))
}

/// Builds a column from one of the files. It is nullable, because later files may have NULLs.
fn found_column(found: &FileColumn) -> Column {
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

fn written_column(binder: &Binder<'_>, table: &str, written: &ColumnDefinition) -> SqlResult<Column> {
    let is_plain =
        |kind: &ColumnConstraintKind| matches!(kind, ColumnConstraintKind::Null | ColumnConstraintKind::NotNull);
    if written.constraints.iter().any(|constraint| !is_plain(&constraint.kind)) {
        let message = "columns of external tables have no defaults and no constraints but NOT NULL";
        return Err(SqlError::new(Condition::WrongObjectType, message).with_column(&written.name.value));
    }
    let column::Defined { column, sequence } = column::defined(binder, table, written)?;
    if sequence.is_some() {
        return Err(impossible(&column.name, "serial"));
    }
    if !fit::is_possible(&column.sql_type) {
        let refused = impossible(&column.name, &column.sql_type.to_string());
        let is_text =
            matches!(column.sql_type, SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Json | SqlType::Jsonb);
        return Err(if is_text { refused.with_hint("Declare it as text.") } else { refused });
    }
    Ok(column)
}

fn impossible(column: &str, type_name: &str) -> SqlError {
    SqlError::unsupported(format_args!("the type {type_name} in an external table")).with_column(column)
}
