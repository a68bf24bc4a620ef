//! COPY FROM and COPY TO.

use std::sync::Arc;

use arrow::datatypes::Schema;
use catalog::{Column, Relation};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Query, SelectItem, SetExpr, TableFactor};
use functions::error::from_datafusion;
use plan::StreamTable;
use syntax::statement::{Copy, CopyDirection, CopyEndpoint, CopySubject, Statement};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::copy_options::{self, CopyFormat, CopyOptions, ForcedColumns};
use super::target::WriteTarget;
use super::{complete_rows, insert};
use crate::bind::Binder;
use crate::query_plan::QueryPlan;
use crate::statement_plan::{CopyFromPlan, CopySource, CopyTarget, CopyToPlan, StatementPlan, WritePlan};

/// Plans a COPY.
///
/// # Errors
/// Errors of the options ([`copy_options::read`]), names and the query; SQLSTATE 42501 for server files without the
/// privilege.
pub fn plan_copy(binder: &Binder<'_>, copy: &Copy, declared: &[Option<SqlType>]) -> SqlResult<StatementPlan> {
    check_privilege(binder, &copy.endpoint, copy.direction)?;
    let options = copy_options::parse_options(&copy.options, copy.direction)?;
    match (copy.direction, &copy.subject) {
        (CopyDirection::From, CopySubject::Table { name, columns }) => {
            if copy.filter.is_some() {
                return Err(SqlError::unsupported("COPY FROM with WHERE"));
            }
            plan_copy_from(binder, name, columns, &copy.endpoint, options).map(StatementPlan::CopyFrom)
        }
        (CopyDirection::From, CopySubject::Query(_)) => {
            Err(SqlError::new(Condition::SyntaxError, "syntax error at or near \"FROM\""))
        }
        (CopyDirection::To, subject) => {
            if copy.filter.is_some() {
                return Err(SqlError::new(Condition::SyntaxError, "WHERE clause not allowed with COPY TO"));
            }
            let query = match subject {
                CopySubject::Query(query) => binder.plan_query(query, declared)?,
                CopySubject::Table { name, columns } => {
                    binder.plan_query(&columns_query(binder, name, columns)?, declared)?
                }
            };
            plan_copy_to(query, &copy.endpoint, options).map(StatementPlan::CopyTo)
        }
    }
}

fn plan_copy_from(
    binder: &Binder<'_>,
    name: &ObjectName,
    columns: &[Ident],
    place: &CopyEndpoint,
    options: CopyOptions,
) -> SqlResult<CopyFromPlan> {
    let unwritable = match binder.resolve_relation(name)? {
        Relation::Table(_) => None,
        Relation::View(view) => Some(format!("cannot copy to view \"{}\"", view.name)),
        Relation::Sequence(sequence) => Some(format!("cannot copy to sequence \"{}\"", sequence.name)),
    };
    if let Some(message) = unwritable {
        return Err(SqlError::new(Condition::WrongObjectType, message));
    }
    let target = WriteTarget::resolve(binder, name, "copy to")?;
    let filled = insert::column_positions(&target.table, columns)?;
    let columns: Vec<Column> = filled.iter().map(|position| target.table.columns[*position].clone()).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let all: Vec<&str> = target.table.columns.iter().map(|column| column.name.as_str()).collect();
    check_forced(Some(&target.table.name), "FORCE_NOT_NULL", &options.force_not_null, &names, &all)?;
    check_forced(Some(&target.table.name), "FORCE_NULL", &options.force_null, &names, &all)?;
    // Every column is nullable here; NOT NULL is tested per row, not per batch.
    let fields = columns.iter().map(|column| column.sql_type.arrow_field(&column.name, true));
    let input = StreamTable::new(Arc::new(Schema::new(fields.collect::<Vec<_>>())));
    let source = LogicalPlanBuilder::scan("copy", provider_as_source(Arc::clone(&input) as _), None)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)?;
    let plan = complete_rows::complete_rows(binder, &target, source, &filled)?;
    let write = WritePlan {
        table: Arc::clone(&target.table),
        changes_before: Vec::new(),
        input: Some(complete_rows::write_input(binder, &target.table, plan, Vec::new())),
        command_tag: "COPY",
        notices: Vec::new(),
        returning: None,
        conflict: None,
    };
    let source = match place {
        CopyEndpoint::Client => CopySource::Stdin,
        CopyEndpoint::File(name) if is_url(name) => CopySource::Url(name.clone()),
        CopyEndpoint::File(name) => CopySource::File(name.clone()),
        CopyEndpoint::Program(_) => return Err(SqlError::unsupported("COPY FROM PROGRAM")),
    };
    Ok(CopyFromPlan { table: target.table, columns, source, options, write, input })
}

fn plan_copy_to(query: QueryPlan, place: &CopyEndpoint, options: CopyOptions) -> SqlResult<CopyToPlan> {
    let names: Vec<&str> = query.columns.iter().map(|column| column.name.as_str()).collect();
    check_forced(None, "FORCE_QUOTE", &options.force_quote, &names, &names)?;
    let target = match place {
        CopyEndpoint::Client if options.format == CopyFormat::Parquet => {
            return Err(SqlError::unsupported("COPY TO STDOUT in Parquet format"));
        }
        CopyEndpoint::Client => CopyTarget::Stdout,
        CopyEndpoint::File(name) if is_url(name) => CopyTarget::Url(name.clone()),
        CopyEndpoint::File(name) if !name.starts_with('/') => {
            return Err(SqlError::new(Condition::InvalidName, "relative path not allowed for COPY to file"));
        }
        CopyEndpoint::File(name) => CopyTarget::File(name.clone()),
        CopyEndpoint::Program(_) => return Err(SqlError::unsupported("COPY TO PROGRAM")),
    };
    Ok(CopyToPlan { query, target, options })
}

/// Checks the privilege for files and programs of the server.
///
/// # Errors
/// SQLSTATE 42501.
fn check_privilege(binder: &Binder<'_>, place: &CopyEndpoint, direction: CopyDirection) -> SqlResult<()> {
    let is_from = direction == CopyDirection::From;
    let (message, role) = match place {
        CopyEndpoint::Client => return Ok(()),
        CopyEndpoint::File(_) if is_from => ("permission denied to COPY from a file", "pg_read_server_files"),
        CopyEndpoint::File(_) => ("permission denied to COPY to a file", "pg_write_server_files"),
        CopyEndpoint::Program(_) => {
            ("permission denied to COPY to or from an external program", "pg_execute_server_program")
        }
    };
    if binder.context().role.superuser {
        return Ok(());
    }
    let detail = format!("Only roles with privileges of the \"{role}\" role may do so: here, superusers.");
    Err(SqlError::new(Condition::InsufficientPrivilege, message)
        .with_detail(detail)
        .with_hint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."))
}

/// Builds a query of the named columns of a table, or of all.
fn columns_query(binder: &Binder<'_>, name: &ObjectName, columns: &[Ident]) -> SqlResult<Query> {
    let table = match binder.resolve_relation(name)? {
        Relation::Table(table) => table,
        Relation::View(view) => {
            let message = format!("cannot copy from view \"{}\"", view.name);
            return Err(
                SqlError::new(Condition::WrongObjectType, message).with_hint("Try the COPY (SELECT ...) TO variant.")
            );
        }
        Relation::Sequence(sequence) => {
            let message = format!("cannot copy from sequence \"{}\"", sequence.name);
            return Err(SqlError::new(Condition::WrongObjectType, message));
        }
    };
    let positions = insert::column_positions(&table, columns)?;
    let parsed = syntax::parse("SELECT 1 FROM t")?.into_iter().next().map(|parsed| parsed.statement);
    let Some(Statement::Query(mut query)) = parsed else {
        return Err(SqlError::internal("SELECT 1 FROM t does not parse as a query"));
    };
    if let SetExpr::Select(select) = query.body.as_mut() {
        let column = |position: &usize| {
            let ident = Ident::with_quote('"', &table.columns[*position].name);
            SelectItem::UnnamedExpr(Expr::Identifier(ident))
        };
        select.projection = positions.iter().map(column).collect();
        if let Some(from) = select.from.first_mut()
            && let TableFactor::Table { name: place, .. } = &mut from.relation
        {
            *place = name.clone();
        }
    }
    Ok(*query)
}

/// Checks that every column named by a FORCE option is copied.
fn check_forced(
    table: Option<&str>,
    option: &str,
    forced: &ForcedColumns,
    copied: &[&str],
    all: &[&str],
) -> SqlResult<()> {
    let ForcedColumns::Named(names) = forced else { return Ok(()) };
    for name in names {
        if !all.contains(&name.as_str()) {
            let message = match table {
                Some(table) => format!("column \"{name}\" of relation \"{table}\" does not exist"),
                None => format!("column \"{name}\" does not exist"),
            };
            return Err(SqlError::new(Condition::UndefinedColumn, message));
        }
        if !copied.contains(&name.as_str()) {
            let message = format!("{option} column \"{name}\" not referenced by COPY");
            return Err(SqlError::new(Condition::InvalidColumnReference, message));
        }
    }
    Ok(())
}

fn is_url(name: &str) -> bool {
    name.contains("://")
}
