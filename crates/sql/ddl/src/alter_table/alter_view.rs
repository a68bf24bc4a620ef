//! ALTER VIEW, and ALTER TABLE where it names a view.

use std::sync::Arc;

use binder::DefinePlan;
use catalog::{Change, View};
use session_context::StatementContext;
use syntax::statement::AlterAction;
use types::{Condition, SqlError, SqlResult};

use super::refuse_existing_in;
use crate::{name_resolution, view_text};

/// Applies the actions to a view.
pub(super) fn alter_view(context: &StatementContext, old: &View, actions: &[AlterAction]) -> SqlResult<DefinePlan> {
    let mut plan = DefinePlan::default();
    let mut view = old.clone();
    let state = &context.snapshot;
    for action in actions {
        match action {
            AlterAction::RenameTo(to) => {
                let schema = schema_name(context, &view);
                let schema = name_resolution::existing_schema(context, &schema)?;
                name_resolution::check_can_create_in(context, &schema, &to.value)?;
                name_resolution::check_name_unused(state, &schema, &to.value)?;
                let moved = view_text::RelationName { schema: &schema.name, name: &to.value };
                plan.changes.extend(view_text::rewrite_for_moved_relation(state, old.oid, &moved)?);
                view.name.clone_from(&to.value);
            }
            AlterAction::SetSchema(to) => {
                let schema = name_resolution::existing_schema(context, &to.value)?;
                if schema.oid == old.schema {
                    continue;
                }
                name_resolution::refuse_temporary_move(context, old.schema, &schema)?;
                name_resolution::check_can_create_in(context, &schema, &view.name)?;
                refuse_existing_in(context, &schema.name, &view.name)?;
                let moved = view_text::RelationName { schema: &schema.name, name: &view.name };
                plan.changes.extend(view_text::rewrite_for_moved_relation(state, old.oid, &moved)?);
                view.schema = schema.oid;
            }
            AlterAction::OwnerTo(role) => view.owner = name_resolution::resolve_new_owner(context, role)?.oid,
            AlterAction::RenameColumn { from, to } => {
                if view.columns.iter().any(|(name, _)| *name == to.value) {
                    let message = format!("column \"{}\" of relation \"{}\" already exists", to.value, view.name);
                    return Err(SqlError::new(Condition::DuplicateColumn, message));
                }
                let found = view.columns.iter_mut().find(|(name, _)| *name == from.value).ok_or_else(|| {
                    SqlError::new(Condition::UndefinedColumn, format!("column \"{}\" does not exist", from.value))
                })?;
                found.0.clone_from(&to.value);
                plan.changes.extend(view_text::rewrite_for_renamed_column(state, old.oid, &from.value, &to.value)?);
            }
            AlterAction::SetDefault { .. } => return Err(SqlError::unsupported("a DEFAULT for a column of a view")),
            other => return Err(unsupported_action(other, &view.name)),
        }
    }
    plan.changes.push(Change::PutView(Arc::new(view)));
    Ok(plan)
}

fn schema_name(context: &StatementContext, view: &View) -> String {
    context.snapshot.schema(view.schema).map(|schema| schema.name.clone()).unwrap_or_default()
}

/// Returns the error for an action that only tables have (`42809`).
fn unsupported_action(action: &AlterAction, view: &str) -> SqlError {
    let action = match action {
        AlterAction::AddColumn { .. } => "ADD COLUMN",
        AlterAction::DropColumn { .. } => "DROP COLUMN",
        AlterAction::SetNotNull { not_null: true, .. } => "ALTER COLUMN ... SET NOT NULL",
        AlterAction::SetNotNull { .. } => "ALTER COLUMN ... DROP NOT NULL",
        AlterAction::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        AlterAction::AddConstraint(_) => "ADD CONSTRAINT",
        AlterAction::DropConstraint { .. } => "DROP CONSTRAINT",
        AlterAction::RenameConstraint { .. } => "RENAME CONSTRAINT",
        _ => "SET",
    };
    let message = format!("ALTER action {action} cannot be performed on relation \"{view}\"");
    SqlError::new(Condition::WrongObjectType, message).with_detail("This operation is not supported for views.")
}
