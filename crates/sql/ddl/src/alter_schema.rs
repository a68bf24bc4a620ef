//! ALTER SCHEMA.

use std::sync::Arc;

use binder::DefinePlan;
use catalog::{Change, Schema};
use session_context::StatementContext;
use syntax::statement::{AlterSchema, AlterSchemaAction};
use types::{Condition, SqlError, SqlResult};

use super::{create_schema, name_resolution, view_text};

/// Renames a schema or changes its owner.
///
/// # Errors
/// `3F000` for an unknown schema, `42P06` for an existing name, `42501` for a schema of another owner or a system
/// schema.
pub fn alter_schema(context: &StatementContext, alter: &AlterSchema) -> SqlResult<DefinePlan> {
    let old = name_resolution::existing_schema(context, &alter.name.value)?;
    name_resolution::check_owner(context, old.owner, "schema", &old.name)?;
    if old.is_system() {
        let message = format!("permission denied to alter schema \"{}\"", old.name);
        return Err(SqlError::new(Condition::InsufficientPrivilege, message)
            .with_detail("System catalog modifications are currently disallowed."));
    }
    let mut plan = DefinePlan { command_tag: "ALTER SCHEMA".to_owned(), ..DefinePlan::default() };
    let mut schema = Schema::clone(&old);
    match &alter.action {
        AlterSchemaAction::OwnerTo(role) => schema.owner = name_resolution::resolve_new_owner(context, role)?.oid,
        AlterSchemaAction::RenameTo(new) => {
            create_schema::refuse_reserved(&new.value)?;
            if context.snapshot.schema_by_name(&new.value).is_some() {
                return Err(create_schema::duplicate_schema(&new.value));
            }
            schema.name.clone_from(&new.value);
            let moved = context.snapshot.relations(old.oid).map(|relation| relation.oid()).collect::<Vec<_>>();
            plan.changes = view_text::rewrite_for_renamed_schema(&context.snapshot, &moved, &old.name, &new.value)?;
        }
    }
    plan.changes.push(Change::PutSchema(Arc::new(schema)));
    Ok(plan)
}
