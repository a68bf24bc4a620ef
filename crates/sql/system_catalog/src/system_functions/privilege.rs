//! The `has_…_privilege` functions. Privileges follow from ownership: a superuser has all, an owner has all on its own
//! objects, and everybody may read system tables.

use functions::catalog_entry;
use types::{Condition, Oid, SqlError, SqlResult};

use super::function_declaration::{FunctionDeclaration, function};
use super::scalar_function::FunctionCall;
use crate::row_builder::Cell;
use crate::row_source::{RelationObject, SYSTEM_OWNER};

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("has_table_privilege", "does a role have a privilege on a relation?", 2..=3, "bool", |call| {
        has_relation_privilege(call, 1)
    })
    .in_catalog(&[
        catalog_entry(1922, "name,text,text", "bool").stable(),
        catalog_entry(1923, "name,oid,text", "bool").stable(),
        catalog_entry(1924, "oid,text,text", "bool").stable(),
        catalog_entry(1925, "oid,oid,text", "bool").stable(),
        catalog_entry(1926, "text,text", "bool").stable(),
        catalog_entry(1927, "oid,text", "bool").stable(),
    ]),
    function("has_any_column_privilege", "does a role have a privilege on any column?", 2..=3, "bool", |call| {
        has_relation_privilege(call, 1)
    })
    .in_catalog(&[
        catalog_entry(3024, "name,text,text", "bool").stable(),
        catalog_entry(3025, "name,oid,text", "bool").stable(),
        catalog_entry(3026, "oid,text,text", "bool").stable(),
        catalog_entry(3027, "oid,oid,text", "bool").stable(),
        catalog_entry(3028, "text,text", "bool").stable(),
        catalog_entry(3029, "oid,text", "bool").stable(),
    ]),
    function("has_column_privilege", "does a role have a privilege on a column?", 3..=4, "bool", |call| {
        has_relation_privilege(call, 2)
    })
    .in_catalog(&[
        catalog_entry(3012, "name,text,text,text", "bool").stable(),
        catalog_entry(3013, "name,text,int2,text", "bool").stable(),
        catalog_entry(3014, "name,oid,text,text", "bool").stable(),
        catalog_entry(3015, "name,oid,int2,text", "bool").stable(),
        catalog_entry(3016, "oid,text,text,text", "bool").stable(),
        catalog_entry(3017, "oid,text,int2,text", "bool").stable(),
        catalog_entry(3018, "oid,oid,text,text", "bool").stable(),
        catalog_entry(3019, "oid,oid,int2,text", "bool").stable(),
        catalog_entry(3020, "text,text,text", "bool").stable(),
        catalog_entry(3021, "text,int2,text", "bool").stable(),
        catalog_entry(3022, "oid,text,text", "bool").stable(),
        catalog_entry(3023, "oid,int2,text", "bool").stable(),
    ]),
    function("has_sequence_privilege", "does a role have a privilege on a sequence?", 2..=3, "bool", |call| {
        has_relation_privilege(call, 1)
    })
    .in_catalog(&[
        catalog_entry(2181, "name,text,text", "bool").stable(),
        catalog_entry(2182, "name,oid,text", "bool").stable(),
        catalog_entry(2183, "oid,text,text", "bool").stable(),
        catalog_entry(2184, "oid,oid,text", "bool").stable(),
        catalog_entry(2185, "text,text", "bool").stable(),
        catalog_entry(2186, "oid,text", "bool").stable(),
    ]),
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
    })
    .in_catalog(&[
        catalog_entry(2268, "name,text,text", "bool").stable(),
        catalog_entry(2269, "name,oid,text", "bool").stable(),
        catalog_entry(2270, "oid,text,text", "bool").stable(),
        catalog_entry(2271, "oid,oid,text", "bool").stable(),
        catalog_entry(2272, "text,text", "bool").stable(),
        catalog_entry(2273, "oid,text", "bool").stable(),
    ]),
    function("has_database_privilege", "does a role have a privilege on a database?", 2..=3, "bool", |call| {
        let (role, at) = checked_role(call, 1)?;
        let wanted = call.text(at + 1);
        Ok(Cell::Bool(role.superuser || wanted.eq_ignore_ascii_case("connect")))
    })
    .in_catalog(&[
        catalog_entry(2250, "name,text,text", "bool").stable(),
        catalog_entry(2251, "name,oid,text", "bool").stable(),
        catalog_entry(2252, "oid,text,text", "bool").stable(),
        catalog_entry(2253, "oid,oid,text", "bool").stable(),
        catalog_entry(2254, "text,text", "bool").stable(),
        catalog_entry(2255, "oid,text", "bool").stable(),
    ]),
    function("has_function_privilege", "does a role have a privilege on a function?", 2..=3, "bool", |_| {
        Ok(Cell::Bool(true))
    })
    .in_catalog(&[
        catalog_entry(2256, "name,text,text", "bool").stable(),
        catalog_entry(2257, "name,oid,text", "bool").stable(),
        catalog_entry(2258, "oid,text,text", "bool").stable(),
        catalog_entry(2259, "oid,oid,text", "bool").stable(),
        catalog_entry(2260, "text,text", "bool").stable(),
        catalog_entry(2261, "oid,text", "bool").stable(),
    ]),
    function("has_type_privilege", "does a role have a privilege on a type?", 2..=3, "bool", |_| Ok(Cell::Bool(true)))
        .in_catalog(&[
            catalog_entry(3138, "name,text,text", "bool").stable(),
            catalog_entry(3139, "name,oid,text", "bool").stable(),
            catalog_entry(3140, "oid,text,text", "bool").stable(),
            catalog_entry(3141, "oid,oid,text", "bool").stable(),
            catalog_entry(3142, "text,text", "bool").stable(),
            catalog_entry(3143, "oid,text", "bool").stable(),
        ]),
    function("has_language_privilege", "does a role have a privilege on a language?", 2..=3, "bool", |_| {
        Ok(Cell::Bool(true))
    })
    .in_catalog(&[
        catalog_entry(2262, "name,text,text", "bool").stable(),
        catalog_entry(2263, "name,oid,text", "bool").stable(),
        catalog_entry(2264, "oid,text,text", "bool").stable(),
        catalog_entry(2265, "oid,oid,text", "bool").stable(),
        catalog_entry(2266, "text,text", "bool").stable(),
        catalog_entry(2267, "oid,text", "bool").stable(),
    ]),
    function("has_tablespace_privilege", "does a role have a privilege on a tablespace?", 2..=3, "bool", |call| {
        Ok(Cell::Bool(checked_role(call, 1)?.0.superuser))
    })
    .in_catalog(&[
        catalog_entry(2390, "name,text,text", "bool").stable(),
        catalog_entry(2391, "name,oid,text", "bool").stable(),
        catalog_entry(2392, "oid,text,text", "bool").stable(),
        catalog_entry(2393, "oid,oid,text", "bool").stable(),
        catalog_entry(2394, "text,text", "bool").stable(),
        catalog_entry(2395, "oid,text", "bool").stable(),
    ]),
    function(
        "has_foreign_data_wrapper_privilege",
        "does a role have a privilege on a foreign data wrapper?",
        2..=3,
        "bool",
        |_| Ok(Cell::Bool(false)),
    )
    .in_catalog(&[
        catalog_entry(3000, "name,text,text", "bool").stable(),
        catalog_entry(3001, "name,oid,text", "bool").stable(),
        catalog_entry(3002, "oid,text,text", "bool").stable(),
        catalog_entry(3003, "oid,oid,text", "bool").stable(),
        catalog_entry(3004, "text,text", "bool").stable(),
        catalog_entry(3005, "oid,text", "bool").stable(),
    ]),
    function("has_server_privilege", "does a role have a privilege on a foreign server?", 2..=3, "bool", |_| {
        Ok(Cell::Bool(false))
    })
    .in_catalog(&[
        catalog_entry(3006, "name,text,text", "bool").stable(),
        catalog_entry(3007, "name,oid,text", "bool").stable(),
        catalog_entry(3008, "oid,text,text", "bool").stable(),
        catalog_entry(3009, "oid,oid,text", "bool").stable(),
        catalog_entry(3010, "text,text", "bool").stable(),
        catalog_entry(3011, "oid,text", "bool").stable(),
    ]),
    function("has_parameter_privilege", "does a role have a privilege on a parameter?", 2..=3, "bool", |_| {
        Ok(Cell::Bool(true))
    })
    .in_catalog(&[
        catalog_entry(6205, "name,text,text", "bool").stable(),
        catalog_entry(6206, "oid,text,text", "bool").stable(),
        catalog_entry(6207, "text,text", "bool").stable(),
    ]),
    function("pg_has_role", "does a role have a privilege on a role?", 2..=3, "bool", |call| {
        let (role, at) = checked_role(call, 1)?;
        let wanted = match call.cell(at) {
            Cell::Text(name) => call.state().role_by_name(name).map(|role| role.oid),
            _ => Some(call.oid(at)?),
        };
        let wanted = wanted.ok_or_else(|| undefined_role(call.text(at)))?;
        Ok(Cell::Bool(role.superuser || role.oid == wanted))
    })
    .in_catalog(&[
        catalog_entry(2705, "name,name,text", "bool").stable(),
        catalog_entry(2706, "name,oid,text", "bool").stable(),
        catalog_entry(2707, "oid,name,text", "bool").stable(),
        catalog_entry(2708, "oid,oid,text", "bool").stable(),
        catalog_entry(2709, "name,text", "bool").stable(),
        catalog_entry(2710, "oid,text", "bool").stable(),
    ]),
    function("row_security_active", "row security for current context active on table?", 1..=1, "bool", |_| {
        Ok(Cell::Bool(false))
    })
    .in_catalog(&[catalog_entry(3298, "oid", "bool").stable(), catalog_entry(3299, "text", "bool").stable()]),
];

/// Returns the role whose privileges are checked, and the position of the object's argument. `fixed` arguments follow
/// the object; one more argument, before the object, names the role.
fn checked_role<'a>(call: &FunctionCall<'a>, fixed: usize) -> SqlResult<(&'a catalog::Role, usize)> {
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

fn has_relation_privilege(call: &FunctionCall<'_>, fixed: usize) -> SqlResult<Cell> {
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
