//! The `has_…_privilege` functions. Privileges follow from ownership: a superuser has all, an owner has all on its own
//! objects, and everybody may read system tables.

use types::{Condition, Oid, SqlError, SqlResult};

use super::call::Call;
use super::declaration::{FunctionDeclaration, function};
use crate::rows::Cell;
use crate::source::{RelationObject, SYSTEM_OWNER};

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("has_table_privilege", "does a role have a privilege on a relation?", 2..=3, "bool", |call| {
        has_relation_privilege(call, 1)
    }),
    function("has_any_column_privilege", "does a role have a privilege on any column?", 2..=3, "bool", |call| {
        has_relation_privilege(call, 1)
    }),
    function("has_column_privilege", "does a role have a privilege on a column?", 3..=4, "bool", |call| {
        has_relation_privilege(call, 2)
    }),
    function("has_sequence_privilege", "does a role have a privilege on a sequence?", 2..=3, "bool", |call| {
        has_relation_privilege(call, 1)
    }),
    function("has_schema_privilege", "does a role have a privilege on a schema?", 2..=3, "bool", |call| {
        let (role, at) = checked_role(call, 1)?;
        let state = call.state();
        let schema = match call.cell(at) {
            Cell::Text(name) => state.schema_by_name(name),
            _ => state.schema(call.oid(at)?),
        };
        let Some(schema) = schema else {
            let message = format!("schema \"{}\" does not exist", call.text(at));
            return Err(SqlError::new(Condition::UndefinedSchema, message));
        };
        let usage = call.text(at + 1).eq_ignore_ascii_case("usage");
        Ok(Cell::Bool(role.superuser || schema.owner == role.oid || usage))
    }),
    function("has_database_privilege", "does a role have a privilege on a database?", 2..=3, "bool", |call| {
        let (role, at) = checked_role(call, 1)?;
        let wanted = call.text(at + 1);
        Ok(Cell::Bool(role.superuser || wanted.eq_ignore_ascii_case("connect")))
    }),
    function("has_function_privilege", "does a role have a privilege on a function?", 2..=3, "bool", |_| {
        Ok(Cell::Bool(true))
    }),
    function("has_type_privilege", "does a role have a privilege on a type?", 2..=3, "bool", |_| Ok(Cell::Bool(true))),
    function("has_language_privilege", "does a role have a privilege on a language?", 2..=3, "bool", |_| {
        Ok(Cell::Bool(true))
    }),
    function("has_tablespace_privilege", "does a role have a privilege on a tablespace?", 2..=3, "bool", |call| {
        Ok(Cell::Bool(checked_role(call, 1)?.0.superuser))
    }),
    function(
        "has_foreign_data_wrapper_privilege",
        "does a role have a privilege on a foreign data wrapper?",
        2..=3,
        "bool",
        |_| Ok(Cell::Bool(false)),
    ),
    function("has_server_privilege", "does a role have a privilege on a foreign server?", 2..=3, "bool", |_| {
        Ok(Cell::Bool(false))
    }),
    function("has_parameter_privilege", "does a role have a privilege on a parameter?", 2..=3, "bool", |_| {
        Ok(Cell::Bool(true))
    }),
    function("pg_has_role", "does a role have a privilege on a role?", 2..=3, "bool", |call| {
        let (role, at) = checked_role(call, 1)?;
        let wanted = match call.cell(at) {
            Cell::Text(name) => call.state().role_by_name(name).map(|role| role.oid),
            _ => Some(call.oid(at)?),
        };
        let wanted = wanted.ok_or_else(|| undefined_role(call.text(at)))?;
        Ok(Cell::Bool(role.superuser || role.oid == wanted))
    }),
    function("row_security_active", "row security for current context active on table?", 1..=1, "bool", |_| {
        Ok(Cell::Bool(false))
    }),
];

/// Returns the role whose privileges are checked, and the position of the object's argument. `fixed` arguments follow
/// the object; one more argument, before the object, names the role.
fn checked_role<'a>(call: &Call<'a>, fixed: usize) -> SqlResult<(&'a catalog::Role, usize)> {
    if call.len() < fixed + 2 {
        return Ok((call.context.role.as_ref(), 0));
    }
    let role = match call.cell(0) {
        Cell::Text(name) => call.state().role_by_name(name),
        _ => call.state().role(call.oid(0)?),
    };
    Ok((role.ok_or_else(|| undefined_role(call.text(0)))?, 1))
}

fn undefined_role(name: &str) -> SqlError {
    SqlError::new(Condition::UndefinedObject, format!("role \"{name}\" does not exist"))
}

fn has_relation_privilege(call: &Call<'_>, fixed: usize) -> SqlResult<Cell> {
    let (role, at) = checked_role(call, fixed)?;
    let Some(relation) = call.relation(at)? else { return Ok(Cell::Null) };
    let privileges = call.text(at + fixed);
    let readable = matches!(relation.object, RelationObject::System(_)) && relation.owner == SYSTEM_OWNER;
    let allowed = privileges.split(',').any(|privilege| match privilege.trim().to_ascii_lowercase().as_str() {
        "select" => readable || owns(role, relation.owner),
        _ => !readable && owns(role, relation.owner),
    });
    Ok(Cell::Bool(allowed))
}

fn owns(role: &catalog::Role, owner: Oid) -> bool {
    role.superuser || role.oid == owner
}
