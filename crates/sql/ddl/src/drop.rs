//! DROP TABLE, EXTERNAL TABLE, VIEW, SEQUENCE and SCHEMA.

use std::sync::Arc;

use binder::DefinePlan;
use catalog::{Schema, Table};
use datafusion::sql::sqlparser::ast::ObjectName;
use session_context::StatementContext;
use syntax::statement::{Drop, DropKind};
use types::{Condition, Oid, SqlError, SqlResult};

use super::name_resolution::{self, ResolvedRelation};
use super::{drop_dependents, index, role, sequence};

/// Drops objects, and with CASCADE their dependants.
///
/// # Errors
/// `2BP01` with the dependants; `42P01`, `3F000` or `42704` for an unknown object, `42809` for one of another kind.
pub fn drop(context: &StatementContext, drop: &Drop) -> SqlResult<DefinePlan> {
    let (tag, kind) = match drop.kind {
        DropKind::Role => return role::drop_role(context, drop),
        DropKind::Table => ("DROP TABLE", "table"),
        DropKind::ExternalTable => ("DROP EXTERNAL TABLE", "external table"),
        DropKind::View => ("DROP VIEW", "view"),
        DropKind::Schema => ("DROP SCHEMA", "schema"),
        DropKind::Index => return index::drop_index(context, drop),
        DropKind::Sequence => ("DROP SEQUENCE", "sequence"),
    };
    let mut plan = DefinePlan { command_tag: tag.to_owned(), ..DefinePlan::default() };
    let mut named: Vec<Oid> = Vec::new();
    for name in &drop.names {
        let found = match drop.kind {
            DropKind::Schema => find_schema(context, name)?,
            _ => find_relation(context, name, kind)?,
        };
        match found {
            Ok(oid) if named.contains(&oid) => {}
            Ok(oid) => named.push(oid),
            Err(missing) if drop.if_exists => {
                let message = format!("{}, skipping", missing.message);
                plan.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
            }
            Err(missing) => return Err(missing),
        }
    }
    let dependencies = drop_dependents::dependants_of_objects(context, &named);
    if !drop.cascade && !dependencies.is_empty() {
        return Err(match named.as_slice() {
            [one] => drop_dependents::drop_refusal(&drop_dependents::describe_object(context, *one), &dependencies),
            _ => for_several_objects(drop_dependents::drop_refusal("", &dependencies)),
        });
    }
    plan.notices.extend(drop_dependents::cascade_notice(&dependencies));
    let dropped = context.snapshot.drop_plan(&named, true);
    plan.changes = dropped.map_err(|error| SqlError::internal(error.to_string()))?.changes;
    Ok(plan)
}

fn for_several_objects(refusal: SqlError) -> SqlError {
    let message = "cannot drop desired object(s) because other objects depend on them".to_owned();
    SqlError { message, ..refusal }
}

/// Finds an index and its table; the inner error becomes a notice with IF EXISTS.
pub(super) fn find_index(
    context: &StatementContext,
    name: &ObjectName,
) -> SqlResult<Result<(Arc<Table>, Oid), SqlError>> {
    match name_resolution::resolve_relation(context, name)? {
        Some(ResolvedRelation::Index(table, oid)) => {
            let owns_schema = context.snapshot.schema(table.schema).is_some_and(|schema| context.owns(schema.owner));
            if !owns_schema {
                name_resolution::check_owner(
                    context,
                    table.owner,
                    "index",
                    name_resolution::split_name(context, name)?.1,
                )?;
            }
            Ok(Ok((table, oid)))
        }
        // The lookup as a relation returns the error: another kind of relation, or none.
        _ => find_relation(context, name, "index").map(|found| {
            Err(match found {
                Err(missing) => missing,
                Ok(_) => SqlError::internal("the relation of DROP INDEX was found as a table, although it is no index"),
            })
        }),
    }
}

/// Finds a table, view or sequence; the inner error becomes a notice with IF EXISTS.
fn find_relation(context: &StatementContext, name: &ObjectName, kind: &str) -> SqlResult<Result<Oid, SqlError>> {
    let (schema, bare) = name_resolution::split_name(context, name)?;
    let Some(found) = name_resolution::resolve_relation(context, name)? else {
        if let Some(schema) = schema
            && let Err(missing) = name_resolution::existing_schema(context, schema)
        {
            return Ok(Err(missing));
        }
        let condition = if kind == "index" { Condition::UndefinedObject } else { Condition::UndefinedTable };
        let message = format!("{kind} \"{}\" does not exist", name_resolution::join_name(name));
        return Ok(Err(SqlError::new(condition, message)));
    };
    let (oid, schema, owner) = match (&found, kind) {
        (ResolvedRelation::Table(table), "table") | (ResolvedRelation::External(table), "table" | "external table") => {
            (table.oid, table.schema, table.owner)
        }
        (ResolvedRelation::View(view), "view") => (view.oid, view.schema, view.owner),
        (ResolvedRelation::Sequence(sequence), "sequence") => {
            sequence::refuse_identity(context, sequence)?;
            (sequence.oid, sequence.schema, sequence.owner)
        }
        (ResolvedRelation::SystemTable, _) => return Err(name_resolution::system_table_error(name)),
        (ResolvedRelation::Key, "index") => {
            let message = format!("cannot drop index {bare} because a constraint requires it");
            return Err(SqlError::new(Condition::DependentObjectsStillExist, message)
                .with_hint("You can drop the constraint instead."));
        }
        (other, _) => {
            let right = match other {
                ResolvedRelation::View(_) => "view",
                ResolvedRelation::Sequence(_) => "sequence",
                ResolvedRelation::Key | ResolvedRelation::Index(..) => "index",
                ResolvedRelation::External(_) => "external table",
                ResolvedRelation::Table(_) | ResolvedRelation::SystemTable => "table",
            };
            let article = if matches!(right, "index" | "external table") { "an" } else { "a" };
            let hint = format!("Use DROP {} to remove {article} {right}.", right.to_uppercase());
            return Err(name_resolution::wrong_kind_error(bare, kind).with_hint(hint));
        }
    };
    let owns_schema = context.snapshot.schema(schema).is_some_and(|schema| context.owns(schema.owner));
    if !owns_schema {
        name_resolution::check_owner(context, owner, kind, bare)?;
    }
    Ok(Ok(oid))
}

/// Finds a schema; the inner error becomes a notice with IF EXISTS.
fn find_schema(context: &StatementContext, name: &ObjectName) -> SqlResult<Result<Oid, SqlError>> {
    let schema = match name_resolution::existing_schema(context, &name_resolution::join_name(name)) {
        Ok(schema) => schema,
        Err(missing) => return Ok(Err(missing)),
    };
    name_resolution::check_owner(context, schema.owner, "schema", &schema.name)?;
    refuse_system(&schema)?;
    Ok(Ok(schema.oid))
}

/// Refuses to drop a system schema (`2BP01`).
fn refuse_system(schema: &Schema) -> SqlResult<()> {
    if !schema.is_system() {
        return Ok(());
    }
    let message = format!("cannot drop schema {} because it is required by the database system", schema.name);
    Err(SqlError::new(Condition::DependentObjectsStillExist, message))
}
