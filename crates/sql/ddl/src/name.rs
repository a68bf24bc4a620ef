//! Name resolution: schemas, relations and roles in the statement's snapshot.

use std::sync::Arc;

use catalog::{CatalogState, Change, Relation, Role, Schema, Sequence, Table, View};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use session_context::StatementContext;
use syntax::statement::RoleSpec;
use types::{Condition, Oid, SqlError, SqlResult, SqlType};

/// Relation that a name refers to.
#[derive(Debug, Clone)]
pub(crate) enum Found {
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
    System,
}

/// Splits a relation's name into the schema, if written, and the name in it.
pub(super) fn split<'n>(context: &StatementContext, name: &'n ObjectName) -> SqlResult<(Option<&'n str>, &'n str)> {
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
pub(super) fn find(context: &StatementContext, name: &ObjectName) -> SqlResult<Option<Found>> {
    Ok(match split(context, name)? {
        (Some(schema), name) => {
            let schema = context.schema_name(schema);
            if let Some(known) = context.snapshot.schema_by_name(&schema) {
                context.refuse_temporary_of_others(known.oid)?;
            }
            find_in(&context.snapshot, &schema, name)
        }
        (None, name) => context.search_path().iter().find_map(|schema| find_in(&context.snapshot, schema, name)),
    })
}

/// Finds a relation by schema and name.
pub(crate) fn find_in(state: &CatalogState, schema: &str, name: &str) -> Option<Found> {
    if system_catalog::has_table(schema, name) {
        return Some(Found::System);
    }
    let schema = state.schema_by_name(schema)?.oid;
    match state.relation(schema, name) {
        Some(Relation::Table(table)) if table.external.is_some() => Some(Found::External(table)),
        Some(Relation::Table(table)) => Some(Found::Table(table)),
        Some(Relation::View(view)) => Some(Found::View(view)),
        Some(Relation::Sequence(sequence)) => Some(Found::Sequence(sequence)),
        None if has_key(state, schema, name) => Some(Found::Key),
        None => state.tables().filter(|table| table.schema == schema).find_map(|table| {
            let index = table.indexes.iter().find(|index| index.name == name)?;
            Some(Found::Index(Arc::clone(table), index.oid))
        }),
    }
}

fn has_key(state: &CatalogState, schema: Oid, name: &str) -> bool {
    let tables = state.tables().filter(|table| table.schema == schema);
    tables.flat_map(|table| &table.constraints).any(|constraint| constraint.kind.is_key() && constraint.name == name)
}

/// Returns the error for an unknown relation (`42P01`).
pub(super) fn no_relation(name: &ObjectName) -> SqlError {
    SqlError::new(Condition::UndefinedTable, format!("relation \"{}\" does not exist", plain(name)))
}

/// Returns the error for a change of a system table (`42501`).
pub(super) fn system_table(name: &ObjectName) -> SqlError {
    let last = name.0.last().and_then(|part| part.as_ident()).map_or("", |ident| ident.value.as_str());
    SqlError::new(Condition::InsufficientPrivilege, format!("permission denied: \"{last}\" is a system catalog"))
}

/// Returns the error for a relation of another kind (`42809`).
pub(super) fn wrong_kind(name: &str, kind: &str) -> SqlError {
    let article = if kind.starts_with(['e', 'i']) { "an" } else { "a" };
    SqlError::new(Condition::WrongObjectType, format!("\"{name}\" is not {article} {kind}"))
}

/// Finds a table, possibly an external one, and checks that the statement's role owns it.
pub(super) fn owned_table(context: &StatementContext, name: &ObjectName) -> SqlResult<Arc<Table>> {
    match find(context, name)?.ok_or_else(|| no_relation(name))? {
        Found::Table(table) | Found::External(table) => {
            must_own(context, table.owner, "table", &table.name)?;
            Ok(table)
        }
        Found::System => Err(system_table(name)),
        Found::View(_) | Found::Sequence(_) | Found::Key | Found::Index(..) => {
            Err(wrong_kind(split(context, name)?.1, "table"))
        }
    }
}

/// Finds a view and checks that the statement's role owns it.
pub(super) fn owned_view(context: &StatementContext, name: &ObjectName) -> SqlResult<Arc<View>> {
    match find(context, name)?.ok_or_else(|| no_relation(name))? {
        Found::View(view) => {
            must_own(context, view.owner, "view", &view.name)?;
            Ok(view)
        }
        Found::System => Err(system_table(name)),
        Found::Table(_) | Found::External(_) | Found::Sequence(_) | Found::Key | Found::Index(..) => {
            Err(wrong_kind(split(context, name)?.1, "view"))
        }
    }
}

/// Finds a sequence and checks that the statement's role owns it.
pub(super) fn owned_sequence(context: &StatementContext, name: &ObjectName) -> SqlResult<Arc<Sequence>> {
    match find(context, name)?.ok_or_else(|| no_relation(name))? {
        Found::Sequence(sequence) => {
            must_own(context, sequence.owner, "sequence", &sequence.name)?;
            Ok(sequence)
        }
        Found::System => Err(system_table(name)),
        Found::Table(_) | Found::External(_) | Found::View(_) | Found::Key | Found::Index(..) => {
            Err(wrong_kind(split(context, name)?.1, "sequence"))
        }
    }
}

/// Checks that the statement's role has the rights of `owner` (`42501`).
pub(super) fn must_own(context: &StatementContext, owner: Oid, kind: &str, name: &str) -> SqlResult<()> {
    if context.owns(owner) {
        return Ok(());
    }
    Err(SqlError::new(Condition::InsufficientPrivilege, format!("must be owner of {kind} {name}")))
}

/// Schema and name for a new relation.
pub(crate) struct Target<'n> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) name: &'n str,
    /// Whether the relation is visible only to its session and dropped at its end.
    pub(crate) temporary: bool,
    /// Change that creates the session's temporary schema, if it does not exist yet.
    pub(crate) made: Option<Change>,
}

/// Chooses the schema for a new relation: the written one, the first one of the search path, or, for temporary
/// relations, the session's temporary schema.
///
/// # Errors
/// `3F000` for an unknown schema, `42501` for one of another owner, `42P16` for a temporary relation in another schema.
pub(crate) fn target<'n>(context: &StatementContext, name: &'n ObjectName, temporary: bool) -> SqlResult<Target<'n>> {
    let (written, name) = split(context, name)?;
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
        return Ok(Target { schema, name, temporary: true, made });
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
    may_create_in(context, &schema, name)?;
    Ok(Target { schema, name, temporary: false, made: None })
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
pub(super) fn may_create_in(context: &StatementContext, schema: &Schema, name: &str) -> SqlResult<()> {
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
pub(super) fn must_be_free(state: &CatalogState, schema: &Schema, name: &str) -> SqlResult<()> {
    if find_in(state, &schema.name, name).is_some() { Err(taken(name)) } else { Ok(()) }
}

/// Returns the error for an existing relation (`42P07`).
pub(crate) fn taken(name: &str) -> SqlError {
    SqlError::new(Condition::DuplicateTable, format!("relation \"{name}\" already exists"))
}

/// Finds a schema by name (`3F000`).
pub(super) fn existing_schema(context: &StatementContext, name: &str) -> SqlResult<Arc<Schema>> {
    let found = context.snapshot.schema_by_name(&context.schema_name(name)).map(Arc::clone);
    found.ok_or_else(|| SqlError::new(Condition::UndefinedSchema, format!("schema \"{name}\" does not exist")))
}

/// Finds the role that a statement names (`42704`).
pub(super) fn role(context: &StatementContext, role: &RoleSpec) -> SqlResult<Arc<Role>> {
    match role {
        RoleSpec::CurrentUser => Ok(Arc::clone(&context.role)),
        RoleSpec::SessionUser => Ok(Arc::clone(&context.session_role)),
        RoleSpec::Name(name) => role_named(context, &name.value),
    }
}

/// Finds a role by name (`42704`).
pub(super) fn role_named(context: &StatementContext, name: &str) -> SqlResult<Arc<Role>> {
    let found = context.snapshot.role_by_name(name).map(Arc::clone);
    found.ok_or_else(|| SqlError::new(Condition::UndefinedObject, format!("role \"{name}\" does not exist")))
}

/// Finds the new owner of OWNER TO or AUTHORIZATION, and checks that the statement's role may give objects to it
/// (`42501`).
pub(super) fn new_owner(context: &StatementContext, spec: &RoleSpec) -> SqlResult<Arc<Role>> {
    let owner = role(context, spec)?;
    if context.role.superuser || context.role.oid == owner.oid {
        return Ok(owner);
    }
    let message = format!("must be member of role \"{}\"", owner.name);
    Err(SqlError::new(Condition::InsufficientPrivilege, message))
}

/// Returns a relation's name for messages: qualified if the search path does not find it.
pub(super) fn shown(context: &StatementContext, relation: Oid) -> String {
    system_catalog::show_name(&SqlType::Regclass, relation.0, context)
}

/// Joins the parts of a name by dots, without quotes.
pub(super) fn plain(name: &ObjectName) -> String {
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
