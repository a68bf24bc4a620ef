//! CREATE SEQUENCE and ALTER SEQUENCE.

use std::sync::Arc;

use binder::DefinePlan;
use catalog::{Change, Sequence, SequenceOwner};
use datafusion::sql::sqlparser::ast::ObjectName;
use session_context::StatementContext;
use syntax::statement::{AlterSequence, AlterSequenceAction, CreateSequence, SequenceOption};
use types::{Condition, Oid, SqlError, SqlResult};

use super::name_resolution::{self, ResolvedRelation};
use super::sequence_options::{self, SequenceUse};
use super::view_text;

/// Creates a sequence.
///
/// # Errors
/// `42P07` for an existing name, `22023` for contradictory options, and errors of OWNED BY.
pub fn create_sequence(context: &StatementContext, create: &CreateSequence) -> SqlResult<DefinePlan> {
    let name_resolution::CreationTarget { schema, name, schema_change: made, .. } =
        name_resolution::creation_target(context, &create.name, create.temporary)?;
    let mut plan = DefinePlan { command_tag: "CREATE SEQUENCE".to_owned(), ..DefinePlan::default() };
    if name_resolution::find_relation_in(&context.snapshot, &schema.name, name).is_some() {
        if !create.if_not_exists {
            return Err(name_resolution::duplicate_relation(name));
        }
        plan.notices.push(super::create_table::already_exists_notice(name));
        return Ok(plan);
    }
    let oid = (context.new_oid)();
    let mut sequence = sequence_options::new_sequence(oid, &create.options, SequenceUse::Plain)?;
    (sequence.schema, sequence.owner) = (schema.oid, context.role.oid);
    name.clone_into(&mut sequence.name);
    apply_owned_by(context, &mut sequence, &create.options)?;
    plan.changes.extend(made);
    plan.changes.push(Change::PutSequence(Arc::new(sequence)));
    Ok(plan)
}

/// Changes the options, name, schema or owner of a sequence.
///
/// # Errors
/// `42P01` or `42809` if the relation is no sequence, `42501` for one of another owner, `22023` for contradictory
/// options, `0A000` for a change that the table which owns the sequence determines.
pub fn alter_sequence(context: &StatementContext, alter: &AlterSequence) -> SqlResult<DefinePlan> {
    let mut plan = DefinePlan { command_tag: "ALTER SEQUENCE".to_owned(), ..DefinePlan::default() };
    if alter.if_exists && name_resolution::resolve_relation(context, &alter.name)?.is_none() {
        let message = format!("relation \"{}\" does not exist, skipping", name_resolution::join_name(&alter.name));
        plan.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
        return Ok(plan);
    }
    let old = name_resolution::owned_sequence(context, &alter.name)?;
    let state = &context.snapshot;
    let mut sequence = Sequence::clone(&old);
    match &alter.action {
        AlterSequenceAction::Options(options) => {
            sequence = sequence_options::apply_options(context, &old, options, SequenceUse::Plain)?;
            if identity_column(context, &old).is_some()
                && options.iter().any(|option| matches!(option, SequenceOption::OwnedBy(_)))
            {
                return Err(linked_sequence(context, &old, "cannot change ownership of identity sequence"));
            }
            apply_owned_by(context, &mut sequence, options)?;
        }
        AlterSequenceAction::RenameTo(to) => {
            let schema =
                state.schema(old.schema).ok_or_else(|| SqlError::internal("a sequence's schema is missing"))?;
            name_resolution::check_can_create_in(context, schema, &to.value)?;
            name_resolution::check_name_unused(state, schema, &to.value)?;
            let moved = view_text::RelationName { schema: &schema.name, name: &to.value };
            plan.changes.extend(view_text::rewrite_for_moved_relation(state, old.oid, &moved)?);
            sequence.name.clone_from(&to.value);
        }
        AlterSequenceAction::SetSchema(to) => {
            if old.owned_by.is_some() {
                return Err(linked_sequence(context, &old, "cannot move an owned sequence into another schema"));
            }
            let schema = name_resolution::existing_schema(context, &to.value)?;
            if schema.oid == old.schema {
                return Ok(plan);
            }
            name_resolution::refuse_temporary_move(context, old.schema, &schema)?;
            name_resolution::check_can_create_in(context, &schema, &old.name)?;
            super::alter_table::refuse_existing_in(context, &schema.name, &old.name)?;
            let moved = view_text::RelationName { schema: &schema.name, name: &old.name };
            plan.changes.extend(view_text::rewrite_for_moved_relation(state, old.oid, &moved)?);
            sequence.schema = schema.oid;
        }
        AlterSequenceAction::OwnerTo(role) => {
            if old.owned_by.is_some() {
                return Err(linked_sequence(
                    context,
                    &old,
                    &format!("cannot change owner of sequence \"{}\"", old.name),
                ));
            }
            sequence.owner = name_resolution::resolve_new_owner(context, role)?.oid;
        }
    }
    plan.changes.push(Change::PutSequence(Arc::new(sequence)));
    Ok(plan)
}

/// Refuses to drop the sequence of an identity column (`2BP01`).
pub(super) fn refuse_identity(context: &StatementContext, sequence: &Sequence) -> SqlResult<()> {
    let Some((table, column)) = identity_column(context, sequence) else { return Ok(()) };
    let what = format!("column {column} of table {}", name_resolution::display_name(context, table));
    let message = format!(
        "cannot drop sequence {} because {what} requires it",
        name_resolution::display_name(context, sequence.oid)
    );
    Err(SqlError::new(Condition::DependentObjectsStillExist, message)
        .with_hint(format!("You can drop {what} instead.")))
}

/// Returns the table and column whose identity the sequence supplies.
fn identity_column(context: &StatementContext, sequence: &Sequence) -> Option<(Oid, String)> {
    let owner = sequence.owned_by?;
    let column = context.snapshot.table(owner.table)?.column(owner.column)?;
    let is_identity = column.identity.is_some_and(|identity| identity.sequence == sequence.oid);
    is_identity.then(|| (owner.table, column.name.clone()))
}

fn linked_sequence(context: &StatementContext, sequence: &Sequence, message: &str) -> SqlError {
    let table = sequence.owned_by.and_then(|owner| context.snapshot.table(owner.table));
    let table = table.map_or("", |table| table.name.as_str());
    SqlError::new(Condition::FeatureNotSupported, message)
        .with_detail(format!("Sequence \"{}\" is linked to table \"{table}\".", sequence.name))
}

/// Applies the OWNED BY option, if there is one.
fn apply_owned_by(context: &StatementContext, sequence: &mut Sequence, options: &[SequenceOption]) -> SqlResult<()> {
    let written = options.iter().find_map(|option| match option {
        SequenceOption::OwnedBy(name) => Some(name),
        _ => None,
    });
    let Some(written) = written else { return Ok(()) };
    let mut parts = written.0.clone();
    let column = parts.pop().and_then(|part| part.as_ident().map(|ident| ident.value.clone())).unwrap_or_default();
    if parts.is_empty() {
        if column == "none" {
            sequence.owned_by = None;
            return Ok(());
        }
        return Err(SqlError::new(Condition::SyntaxError, "invalid OWNED BY option")
            .with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
    }
    let relation = ObjectName(parts);
    let table = match name_resolution::resolve_relation(context, &relation)?
        .ok_or_else(|| name_resolution::undefined_relation(&relation))?
    {
        ResolvedRelation::Table(table) => table,
        _ => {
            let bare = name_resolution::split_name(context, &relation)?.1;
            let message = format!("sequence cannot be owned by relation \"{bare}\"");
            return Err(SqlError::new(Condition::WrongObjectType, message));
        }
    };
    let refused = |message: &str| Err(SqlError::new(Condition::ObjectNotInPrerequisiteState, message));
    if table.owner != sequence.owner {
        return refused("sequence must have same owner as table it is linked to");
    }
    if table.schema != sequence.schema {
        return refused("sequence must be in same schema as table it is linked to");
    }
    let column =
        table.column_by_name(&column).ok_or_else(|| super::comment_on::undefined_column(&column, &table.name))?.1;
    sequence.owned_by = Some(SequenceOwner { table: table.oid, column: column.id });
    Ok(())
}
