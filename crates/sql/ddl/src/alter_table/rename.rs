//! New names for a table, its columns and constraints, and a new schema. Views that read them are rewritten.

use catalog::ConstraintKind;
use types::{Condition, SqlError, SqlResult};

use super::Alteration;
use crate::{column_definition, constraint, expression_text, name_resolution, view_text};

impl Alteration<'_> {
    pub(super) fn rename_to(&mut self, to: &str) -> SqlResult<()> {
        let state = &self.context().snapshot;
        let schema = name_resolution::existing_schema(self.context(), &self.schema_name())?;
        name_resolution::check_can_create_in(self.context(), &schema, to)?;
        name_resolution::check_name_unused(state, &schema, to)?;
        let moved = view_text::RelationName { schema: &schema.name, name: to };
        self.changes_before.extend(view_text::rewrite_for_moved_relation(state, self.old.oid, &moved)?);
        to.clone_into(&mut self.table.name);
        Ok(())
    }

    pub(super) fn set_schema(&mut self, to: &str) -> SqlResult<()> {
        let context = self.context();
        let schema = name_resolution::existing_schema(context, to)?;
        if schema.oid == self.old.schema {
            return Ok(());
        }
        name_resolution::refuse_temporary_move(context, self.old.schema, &schema)?;
        name_resolution::check_can_create_in(context, &schema, &self.table.name)?;
        refuse_existing_in(context, &schema.name, &self.table.name)?;
        for key in self.table.constraints.iter().filter(|constraint| constraint.kind.is_key()) {
            refuse_existing_in(context, &schema.name, &key.name)?;
        }
        let moved = view_text::RelationName { schema: &schema.name, name: &self.table.name };
        self.changes_before.extend(view_text::rewrite_for_moved_relation(&context.snapshot, self.old.oid, &moved)?);
        for sequence in context.snapshot.owned_sequences(self.old.oid) {
            refuse_existing_in(context, &schema.name, &sequence.name)?;
        }
        self.table.schema = schema.oid;
        self.for_each_sequence(|sequence| sequence.schema = schema.oid);
        Ok(())
    }

    pub(super) fn rename_column(&mut self, from: &str, to: &str) -> SqlResult<()> {
        if self.table.column_by_name(from).is_none() {
            return Err(SqlError::new(Condition::UndefinedColumn, format!("column \"{from}\" does not exist")));
        }
        if self.table.column_by_name(to).is_some() {
            let message = format!("column \"{to}\" of relation \"{}\" already exists", self.table.name);
            return Err(SqlError::new(Condition::DuplicateColumn, message));
        }
        column_definition::refuse_system_name(to)?;
        let state = &self.context().snapshot;
        self.changes_before.extend(view_text::rewrite_for_renamed_column(state, self.old.oid, from, to)?);
        for constraint in &mut self.table.constraints {
            if let ConstraintKind::Check { expression, .. } = &mut constraint.kind {
                *expression = expression_text::rename_column(expression, from, to)?;
            }
        }
        to.clone_into(&mut self.column(from)?.name);
        Ok(())
    }

    pub(super) fn rename_constraint(&mut self, from: &str, to: &str) -> SqlResult<()> {
        let Some(index) = self.table.constraints.iter().position(|constraint| constraint.name == from) else {
            let message = format!("constraint \"{from}\" for table \"{}\" does not exist", self.table.name);
            return Err(SqlError::new(Condition::UndefinedObject, message));
        };
        if self.table.constraints[index].kind.is_key() {
            let schema = self.schema_name();
            if name_resolution::find_relation_in(&self.context().snapshot, &schema, to).is_some() {
                return Err(name_resolution::duplicate_relation(to));
            }
        } else if self.table.constraints.iter().any(|constraint| constraint.name == to) {
            return Err(constraint::duplicate_constraint(to, &self.table.name));
        }
        to.clone_into(&mut self.table.constraints[index].name);
        Ok(())
    }

    fn schema_name(&self) -> String {
        self.context().snapshot.schema(self.table.schema).map(|schema| schema.name.clone()).unwrap_or_default()
    }
}

/// Checks that no relation of the schema has the name (`42P07`).
pub(crate) fn refuse_existing_in(
    context: &session_context::StatementContext,
    schema: &str,
    name: &str,
) -> SqlResult<()> {
    if name_resolution::find_relation_in(&context.snapshot, schema, name).is_none() {
        return Ok(());
    }
    let message = format!("relation \"{name}\" already exists in schema \"{schema}\"");
    Err(SqlError::new(Condition::DuplicateTable, message))
}
