//! CREATE SCHEMA.

use std::sync::Arc;

use binder::DefinePlan;
use catalog::{Change, Schema};
use session_context::StatementContext;
use syntax::statement::CreateSchema;
use types::{Condition, SqlError, SqlResult};

use super::name_resolution;

/// Creates a schema, owned by the role of AUTHORIZATION or else by the statement's role.
///
/// # Errors
/// `42P06` for an existing name, `42939` for a reserved one, `42501` without the right to create schemas, `42704` for
/// an unknown role.
pub fn create_schema(context: &StatementContext, create: &CreateSchema) -> SqlResult<DefinePlan> {
    let owner = match &create.owner {
        Some(role) => name_resolution::resolve_new_owner(context, role)?,
        None => Arc::clone(&context.role),
    };
    let name = create.name.as_ref().map_or(&owner.name, |name| &name.value);
    if !context.owns(context.snapshot.database().owner) {
        let message = format!("permission denied for database {}", context.database);
        return Err(SqlError::new(Condition::InsufficientPrivilege, message));
    }
    refuse_reserved(name)?;
    let mut plan = DefinePlan { command_tag: "CREATE SCHEMA".to_owned(), ..DefinePlan::default() };
    if context.snapshot.schema_by_name(name).is_some() {
        if !create.if_not_exists {
            return Err(duplicate_schema(name));
        }
        let message = format!("schema \"{name}\" already exists, skipping");
        plan.notices.push(SqlError::new(Condition::DuplicateSchema, message));
        return Ok(plan);
    }
    let schema = Schema { oid: (context.new_oid)(), name: name.clone(), owner: owner.oid, comment: None };
    plan.changes.push(Change::PutSchema(Arc::new(schema)));
    Ok(plan)
}

/// Refuses names that are reserved for system schemas (`42939`).
pub(super) fn refuse_reserved(name: &str) -> SqlResult<()> {
    if name.starts_with("pg_") {
        return Err(SqlError::new(Condition::ReservedName, format!("unacceptable schema name \"{name}\""))
            .with_detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    Ok(())
}

/// Returns the error for an existing schema (`42P06`).
pub(super) fn duplicate_schema(name: &str) -> SqlError {
    SqlError::new(Condition::DuplicateSchema, format!("schema \"{name}\" already exists"))
}
