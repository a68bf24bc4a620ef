//! Name resolution: schemas, relations and roles in the statement's snapshot.

use std::sync::Arc;

use catalog::{CatalogState, Change, Relation, Role, Schema, Sequence, Table, View};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use session_context::StatementContext;
use syntax::statement::RoleSpec;
use types::{Condition, Oid, SqlError, SqlResult, SqlType};

/// Relation that a name refers to.
#[derive(Debug, Clone)]
pub(crate) enum ResolvedRelation {
    Table(Arc<Table>),
    /// Table over files that other systems write.
    External(Arc<Table>),
    View(Arc<View>),
    Sequence(Arc<Sequence>),
    /// Key constraint, which the system catalog shows as an index.
    Key,
    /// Index of a table.
    Index(Arc<Table>, Oid),
    /// System table.
    SystemTable,
}

/// Splits a relation's name into the schema, if written, and the name in it.
pub(super) fn split_name<'n>(
    context: &StatementContext,
    name: &'n ObjectName,
) -> SqlResult<(Option<&'n str>, &'n str)> {
    let mut parts = Vec::with_capacity(name.0.len());
    for part in &name.0 {
        let ident = part.as_ident().ok_or_else(|| SqlError::unsupported(format!("the name {name}")))?;
        parts.push(ident.value.as_str());
    }
    match parts.as_slice() {
        [name] => Ok((None, name)),
        [schema, name] => Ok((Some(schema), name)),
        [database, schema, name] if *database == context.database => Ok((Some(schema), name)),
        [_, _, _] => Err(SqlError::new(
            Condition::FeatureNotSupported,
            format!("cross-database references are not implemented: \"{}\"", parts.join(".")),
        )),
        _ => Err(SqlError::new(
            Condition::SyntaxError,
            format!("improper qualified name (too many dotted names): {}", parts.join(".")),
        )),
    }
}

/// Finds a relation by name, along the search path if no schema is written.
pub(super) fn resolve_relation(context: &StatementContext, name: &ObjectName) -> SqlResult<Option<ResolvedRelation>> {
    Ok(match split_name(context, name)? {
        (Some(schema), name) => {
            let schema = context.schema_name(schema);
            if let Some(known) = context.snapshot.schema_by_name(&schema) {
                context.check_not_foreign_temporary(known.oid)?;
            }
            find_relation_in(&context.snapshot, &schema, name)
        }
        (None, name) => {
            context.search_path().iter().find_map(|schema| find_relation_in(&context.snapshot, schema, name))
        }
    })
}

/// Finds a relation by schema and name.
pub(crate) fn find_relation_in(state: &CatalogState, schema: &str, name: &str) -> Option<ResolvedRelation> {
    if system_catalog::has_table(schema, name) {
        return Some(ResolvedRelation::SystemTable);
    }
    let schema = state.schema_by_name(schema)?.oid;
    match state.relation(schema, name) {
        Some(Relation::Table(table)) if table.external.is_some() => Some(ResolvedRelation::External(table)),
        Some(Relation::Table(table)) => Some(ResolvedRelation::Table(table)),
        Some(Relation::View(view)) => Some(ResolvedRelation::View(view)),
        Some(Relation::Sequence(sequence)) => Some(ResolvedRelation::Sequence(sequence)),
        None if has_key(state, schema, name) => Some(ResolvedRelation::Key),
        None => state.tables().filter(|table| table.schema == schema).find_map(|table| {
            let index = table.indexes.iter().find(|index| index.name == name)?;
            Some(ResolvedRelation::Index(Arc::clone(table), index.oid))
        }),
    }
}

fn has_key(state: &CatalogState, schema: Oid, name: &str) -> bool {
    let tables = state.tables().filter(|table| table.schema == schema);
    tables.flat_map(|table| &table.constraints).any(|constraint| constraint.kind.is_key() && constraint.name == name)
}

/// Returns the error for an unknown relation (`42P01`).
pub(super) fn undefined_relation(name: &ObjectName) -> SqlError {
    SqlError::new(Condition::UndefinedTable, format!("relation \"{}\" does not exist", join_name(name)))
}

/// Returns the error for a change of a system table (`42501`).
pub(super) fn system_table_error(name: &ObjectName) -> SqlError {
    let last = name.0.last().and_then(|part| part.as_ident()).map_or("", |ident| ident.value.as_str());
    SqlError::new(Condition::InsufficientPrivilege, format!("permission denied: \"{last}\" is a system catalog"))
}

/// Returns the error for a relation of another kind (`42809`).
pub(super) fn wrong_kind_error(name: &str, kind: &str) -> SqlError {
    let article = if kind.starts_with(['e', 'i']) { "an" } else { "a" };
    SqlError::new(Condition::WrongObjectType, format!("\"{name}\" is not {article} {kind}"))
}

/// Finds a table, possibly an external one, and checks that the statement's role owns it.
pub(super) fn owned_table(context: &StatementContext, name: &ObjectName) -> SqlResult<Arc<Table>> {
    match resolve_relation(context, name)?.ok_or_else(|| undefined_relation(name))? {
        ResolvedRelation::Table(table) | ResolvedRelation::External(table) => {
            check_owner(context, table.owner, "table", &table.name)?;
            Ok(table)
        }
        ResolvedRelation::SystemTable => Err(system_table_error(name)),
        ResolvedRelation::View(_)
        | ResolvedRelation::Sequence(_)
        | ResolvedRelation::Key
        | ResolvedRelation::Index(..) => Err(wrong_kind_error(split_name(context, name)?.1, "table")),
    }
}

/// Finds a view and checks that the statement's role owns it.
pub(super) fn owned_view(context: &StatementContext, name: &ObjectName) -> SqlResult<Arc<View>> {
    match resolve_relation(context, name)?.ok_or_else(|| undefined_relation(name))? {
        ResolvedRelation::View(view) => {
            check_owner(context, view.owner, "view", &view.name)?;
            Ok(view)
        }
        ResolvedRelation::SystemTable => Err(system_table_error(name)),
        ResolvedRelation::Table(_)
        | ResolvedRelation::External(_)
        | ResolvedRelation::Sequence(_)
        | ResolvedRelation::Key
        | ResolvedRelation::Index(..) => Err(wrong_kind_error(split_name(context, name)?.1, "view")),
    }
}

/// Finds a sequence and checks that the statement's role owns it.
pub(super) fn owned_sequence(context: &StatementContext, name: &ObjectName) -> SqlResult<Arc<Sequence>> {
    match resolve_relation(context, name)?.ok_or_else(|| undefined_relation(name))? {
        ResolvedRelation::Sequence(sequence) => {
            check_owner(context, sequence.owner, "sequence", &sequence.name)?;
            Ok(sequence)
        }
        ResolvedRelation::SystemTable => Err(system_table_error(name)),
        ResolvedRelation::Table(_)
        | ResolvedRelation::External(_)
        | ResolvedRelation::View(_)
        | ResolvedRelation::Key
        | ResolvedRelation::Index(..) => Err(wrong_kind_error(split_name(context, name)?.1, "sequence")),
    }
}

/// Checks that the statement's role has the rights of `owner` (`42501`).
pub(super) fn check_owner(context: &StatementContext, owner: Oid, kind: &str, name: &str) -> SqlResult<()> {
    if context.owns(owner) {
        return Ok(());
    }
    Err(SqlError::new(Condition::InsufficientPrivilege, format!("must be owner of {kind} {name}")))
}

/// Schema and name for a new relation.
pub(crate) struct CreationTarget<'n> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) name: &'n str,
    /// Whether the relation is visible only to its session and dropped at its end.
    pub(crate) temporary: bool,
    /// Change that creates the session's temporary schema, if it does not exist yet.
    pub(crate) schema_change: Option<Change>,
}

/// Chooses the schema for a new relation: the written one, the first one of the search path, or, for temporary
/// relations, the session's temporary schema.
///
/// # Errors
/// `3F000` for an unknown schema, `42501` for one of another owner, `42P16` for a temporary relation in another schema.
pub(crate) fn creation_target<'n>(
    context: &StatementContext,
    name: &'n ObjectName,
    temporary: bool,
) -> SqlResult<CreationTarget<'n>> {
    let (written, name) = split_name(context, name)?;
    let own = context.temp_schema_name();
    let wanted =
        match written {
            Some(schema) => Some(context.schema_name(schema).into_owned()),
            None if temporary => Some(own.clone()),
            None => {
                let first = context.settings.search_path().into_iter().find(|name| {
                    let name = if name == "$user" { &context.role.name } else { name };
                    name == "pg_temp" || context.snapshot.schema_by_name(name).is_some()
                });
                first.map(|name| {
                    if name == "$user" { context.role.name.clone() } else { context.schema_name(&name).into_owned() }
                })
            }
        };
    let wanted =
        wanted.ok_or_else(|| SqlError::new(Condition::UndefinedSchema, "no schema has been selected to create in"))?;
    if wanted == own {
        let known = context.snapshot.schema_by_name(&own).map(Arc::clone);
        let (schema, made) = match known {
            Some(schema) => (schema, None),
            None => {
                let oid = (context.new_oid)();
                let schema = Arc::new(Schema { oid, name: own, owner: Role::BOOTSTRAP, comment: None });
                (Arc::clone(&schema), Some(Change::PutSchema(schema)))
            }
        };
        return Ok(CreationTarget { schema, name, temporary: true, schema_change: made });
    }
    let schema = existing_schema(context, &wanted)?;
    if temporary {
        let message = "cannot create temporary relation in non-temporary schema";
        return Err(SqlError::new(Condition::InvalidTableDefinition, message));
    }
    if schema.is_temporary() {
        let message = "cannot create relations in temporary schemas of other sessions";
        return Err(SqlError::new(Condition::InvalidTableDefinition, message));
    }
    check_can_create_in(context, &schema, name)?;
    Ok(CreationTarget { schema, name, temporary: false, schema_change: None })
}

/// Refuses to move objects into or out of temporary schemas (`0A000`).
pub(super) fn refuse_temporary_move(context: &StatementContext, from: Oid, to: &Schema) -> SqlResult<()> {
    if to.is_temporary() || context.snapshot.schema(from).is_some_and(|schema| schema.is_temporary()) {
        let message = "cannot move objects into or out of temporary schemas";
        return Err(SqlError::new(Condition::FeatureNotSupported, message));
    }
    Ok(())
}

/// Checks that the statement's role may create a relation called `name` in the schema (`42501`).
pub(super) fn check_can_create_in(context: &StatementContext, schema: &Schema, name: &str) -> SqlResult<()> {
    if schema.is_system() {
        let message = format!("permission denied to create \"{}.{name}\"", schema.name);
        return Err(SqlError::new(Condition::InsufficientPrivilege, message)
            .with_detail("System catalog modifications are currently disallowed."));
    }
    if !context.owns(schema.owner) && schema.name != context.temp_schema_name() {
        let message = format!("permission denied for schema {}", schema.name);
        return Err(SqlError::new(Condition::InsufficientPrivilege, message));
    }
    Ok(())
}

/// Checks that no relation of the schema has the name (`42P07`).
pub(super) fn check_name_unused(state: &CatalogState, schema: &Schema, name: &str) -> SqlResult<()> {
    if find_relation_in(state, &schema.name, name).is_some() { Err(duplicate_relation(name)) } else { Ok(()) }
}

/// Returns the error for an existing relation (`42P07`).
pub(crate) fn duplicate_relation(name: &str) -> SqlError {
    SqlError::new(Condition::DuplicateTable, format!("relation \"{name}\" already exists"))
}

/// Finds a schema by name (`3F000`).
pub(super) fn existing_schema(context: &StatementContext, name: &str) -> SqlResult<Arc<Schema>> {
    let found = context.snapshot.schema_by_name(&context.schema_name(name)).map(Arc::clone);
    found.ok_or_else(|| SqlError::new(Condition::UndefinedSchema, format!("schema \"{name}\" does not exist")))
}

/// Finds the role that a statement names (`42704`).
pub(super) fn resolve_role(context: &StatementContext, role: &RoleSpec) -> SqlResult<Arc<Role>> {
    match role {
        RoleSpec::CurrentUser => Ok(Arc::clone(&context.role)),
        RoleSpec::SessionUser => Ok(Arc::clone(&context.session_role)),
        RoleSpec::Name(name) => role_by_name(context, &name.value),
    }
}

/// Finds a role by name (`42704`).
pub(super) fn role_by_name(context: &StatementContext, name: &str) -> SqlResult<Arc<Role>> {
    let found = context.snapshot.role_by_name(name).map(Arc::clone);
    found.ok_or_else(|| SqlError::new(Condition::UndefinedObject, format!("role \"{name}\" does not exist")))
}

/// Finds the new owner of OWNER TO or AUTHORIZATION, and checks that the statement's role may give objects to it
/// (`42501`).
pub(super) fn resolve_new_owner(context: &StatementContext, spec: &RoleSpec) -> SqlResult<Arc<Role>> {
    let owner = resolve_role(context, spec)?;
    if context.role.superuser || context.role.oid == owner.oid {
        return Ok(owner);
    }
    let message = format!("must be member of role \"{}\"", owner.name);
    Err(SqlError::new(Condition::InsufficientPrivilege, message))
}

/// Returns a relation's name for messages: qualified if the search path does not find it.
pub(super) fn display_name(context: &StatementContext, relation: Oid) -> String {
    system_catalog::display_name(&SqlType::Regclass, relation.0, context)
}

/// Joins the parts of a name by dots, without quotes.
pub(super) fn join_name(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| part.as_ident().map_or_else(|| part.to_string(), |ident| ident.value.clone()));
    parts.collect::<Vec<_>>().join(".")
}

/// Builds an identifier for SQL text, quoted where necessary.
pub(super) fn ident(name: &str) -> Ident {
    if system_catalog::quote_ident(name) == name { Ident::new(name) } else { Ident::with_quote('"', name) }
}

/// Builds the name `schema.name` for SQL text.
pub(super) fn qualified(schema: &str, name: &str) -> ObjectName {
    ObjectName::from(vec![ident(schema), ident(name)])
}
