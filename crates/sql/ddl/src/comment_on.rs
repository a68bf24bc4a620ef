//! COMMENT ON.

use std::sync::Arc;

use binder::DefinePlan;
use catalog::{Change, Constraint, Database, Role, Schema, Sequence, Table, View};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use session_context::StatementContext;
use syntax::statement::{Comment, CommentTarget};
use types::{Condition, SqlError, SqlResult};

use super::name_resolution::{self, ResolvedRelation};

/// Sets or removes the comment of an object; an empty comment is removed.
///
/// # Errors
/// Errors of the name, `42501` for an object of another owner.
pub fn comment(context: &StatementContext, comment: &Comment) -> SqlResult<DefinePlan> {
    let text = comment.text.clone().filter(|text| !text.is_empty());
    let change = match &comment.target {
        CommentTarget::Table(name) => {
            let table = name_resolution::owned_table(context, name)?;
            Change::PutTable(Arc::new(Table { comment: text, ..Table::clone(&table) }))
        }
        CommentTarget::View(name) => {
            let view = name_resolution::owned_view(context, name)?;
            Change::PutView(Arc::new(View { comment: text, ..View::clone(&view) }))
        }
        CommentTarget::Sequence(name) => {
            let sequence = name_resolution::owned_sequence(context, name)?;
            Change::PutSequence(Arc::new(Sequence { comment: text, ..Sequence::clone(&sequence) }))
        }
        CommentTarget::Column { relation, column } => comment_on_column(context, relation, column, text)?,
        CommentTarget::Constraint { name, table } => comment_on_constraint(context, name, table, text)?,
        CommentTarget::Schema(name) => {
            let schema = name_resolution::existing_schema(context, &name.value)?;
            name_resolution::check_owner(context, schema.owner, "schema", &schema.name)?;
            Change::PutSchema(Arc::new(Schema { comment: text, ..Schema::clone(&schema) }))
        }
        CommentTarget::Role(name) => {
            let role = name_resolution::role_by_name(context, &name.value)?;
            super::role::check_can_alter(context, &role)?;
            Change::PutRole(Arc::new(Role { comment: text, ..Role::clone(&role) }))
        }
        CommentTarget::Database(name) => {
            let database = context.snapshot.database();
            super::role::check_database_name(context, &name.value)?;
            name_resolution::check_owner(context, database.owner, "database", &database.name)?;
            Change::PutDatabase(Arc::new(Database { comment: text, ..Database::clone(database) }))
        }
    };
    Ok(DefinePlan { changes: vec![change], command_tag: "COMMENT".to_owned(), ..DefinePlan::default() })
}

fn comment_on_column(
    context: &StatementContext,
    relation: &ObjectName,
    column: &Ident,
    text: Option<String>,
) -> SqlResult<Change> {
    if let Some(ResolvedRelation::View(view)) = name_resolution::resolve_relation(context, relation)? {
        name_resolution::check_owner(context, view.owner, "relation", &view.name)?;
        let mut view = View::clone(&view);
        let position = view.columns.iter().position(|(name, _)| *name == column.value);
        let position = position.ok_or_else(|| undefined_column(&column.value, &view.name))?;
        let id = View::column_id(position);
        match text {
            Some(text) => view.column_comments.insert(id, text),
            None => view.column_comments.remove(&id),
        };
        return Ok(Change::PutView(Arc::new(view)));
    }
    let mut table = Table::clone(&*name_resolution::owned_table(context, relation)?);
    let found = table.columns.iter_mut().find(|known| known.name == column.value);
    found.ok_or_else(|| undefined_column(&column.value, &table.name))?.comment = text;
    Ok(Change::PutTable(Arc::new(table)))
}

fn comment_on_constraint(
    context: &StatementContext,
    name: &Ident,
    table: &ObjectName,
    text: Option<String>,
) -> SqlResult<Change> {
    let mut table = Table::clone(&*name_resolution::owned_table(context, table)?);
    let found: Option<&mut Constraint> = table.constraints.iter_mut().find(|known| known.name == name.value);
    found
        .ok_or_else(|| {
            let message = format!("constraint \"{}\" for table \"{}\" does not exist", name.value, table.name);
            SqlError::new(Condition::UndefinedObject, message)
        })?
        .comment = text;
    Ok(Change::PutTable(Arc::new(table)))
}

/// Returns the error for an unknown column (`42703`).
pub(super) fn undefined_column(column: &str, relation: &str) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
    SqlError::new(Condition::UndefinedColumn, message)
}
