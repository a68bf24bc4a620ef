//! Identity and settings of the session.

use functions::catalog_entry;
use session_context::SettingAssignment;
use types::{Condition, Oid, SqlError, SqlResult};

use super::function_declaration::{FunctionDeclaration, function};
use super::scalar_function::FunctionCall;
use crate::row_builder::Cell;

pub(super) const FUNCTIONS: &[FunctionDeclaration] = &[
    function("current_database", "name of the current database", 0..=0, "name", |call| {
        Ok(Cell::from(&call.context.database))
    })
    .in_catalog(&[catalog_entry(861, "", "name").stable()]),
    function("current_catalog", "name of the current database", 0..=0, "name", |call| {
        Ok(Cell::from(&call.context.database))
    }),
    function("current_schema", "current schema name", 0..=0, "name", |call| {
        Ok(call.context.explicit_search_path().first().into())
    })
    .in_catalog(&[catalog_entry(1402, "", "name").stable()]),
    function("current_schemas", "current schema search list", 1..=1, "name[]", |call| {
        let implicit = call.bool(0);
        Ok(if implicit { call.context.search_path() } else { call.context.explicit_search_path() }.into())
    })
    .in_catalog(&[catalog_entry(1403, "bool", "_name").stable()]),
    function("current_user", "current user name", 0..=0, "name", |call| Ok(Cell::from(&call.context.role.name)))
        .in_catalog(&[catalog_entry(745, "", "name").stable()]),
    function("current_role", "current user name", 0..=0, "name", |call| Ok(Cell::from(&call.context.role.name))),
    function("user", "current user name", 0..=0, "name", |call| Ok(Cell::from(&call.context.role.name))),
    function("session_user", "session user name", 0..=0, "name", |call| {
        Ok(Cell::from(&call.context.session_role.name))
    })
    .in_catalog(&[catalog_entry(746, "", "name").stable()]),
    function("pg_backend_pid", "process ID of the current session", 0..=0, "int4", |call| {
        Ok(call.context.backend_pid.into())
    })
    .in_catalog(&[catalog_entry(2026, "", "int4").stable()]),
    function("pg_my_temp_schema", "get OID of current session's temp schema, if any", 0..=0, "oid", |call| {
        let own = call.state().schema_by_name(&call.context.temp_schema_name());
        Ok(own.map_or(Oid(0), |schema| schema.oid).into())
    })
    .in_catalog(&[catalog_entry(2854, "", "oid").stable()]),
    function("pg_is_other_temp_schema", "is schema another session's temp schema?", 1..=1, "bool", |call| {
        Ok(call.context.check_not_foreign_temporary(call.oid(0)?).is_err().into())
    })
    .in_catalog(&[catalog_entry(2855, "oid", "bool").stable()]),
    function("inet_server_addr", "inet address of the server", 0..=0, "inet", |_| Ok(Cell::Null)),
    function("inet_server_port", "server's port number for this connection", 0..=0, "int4", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(2199, "", "int4").stable().called_on_null()]),
    function("inet_client_addr", "inet address of the client", 0..=0, "inet", |_| Ok(Cell::Null)),
    function("inet_client_port", "client's port number for this connection", 0..=0, "int4", |_| Ok(Cell::Null))
        .in_catalog(&[catalog_entry(2197, "", "int4").stable().called_on_null()]),
    function("current_setting", "SHOW X as a function", 1..=2, "text", |call| {
        match call.context.settings.get(call.text(0)) {
            Err(_) if call.bool(1) => Ok(Cell::Null),
            value => value.map(Cell::Text),
        }
    })
    .in_catalog(&[catalog_entry(2077, "text", "text").stable(), catalog_entry(3294, "text,bool", "text").stable()]),
    function("set_config", "SET X as a function", 3..=3, "text", set_config)
        .in_catalog(&[catalog_entry(2078, "text,text,bool", "text").volatile().called_on_null()])
        .with_nulls()
        .volatile(),
    // Advisory locks cannot be taken, so none is held.
    function("pg_advisory_unlock_all", "release all advisory locks", 0..=0, "text", |_| Ok(Cell::Text(String::new())))
        .in_catalog(&[catalog_entry(2892, "", "void").volatile()])
        .volatile(),
    function("pg_cancel_backend", "cancel a session's current query", 1..=1, "bool", |call| {
        signal_session(call, false)
    })
    .in_catalog(&[catalog_entry(2171, "int4", "bool").volatile()])
    .volatile(),
    function("pg_terminate_backend", "terminate a session", 1..=2, "bool", |call| signal_session(call, true))
        .in_catalog(&[catalog_entry(2096, "int4,int8", "bool").volatile()])
        .volatile(),
];

/// Sets a setting and returns its value as SHOW prints it; NULL resets it.
fn set_config(call: &FunctionCall<'_>) -> SqlResult<Cell> {
    if *call.cell(0) == Cell::Null {
        return Err(SqlError::new(Condition::NullValueNotAllowed, "SET requires parameter name"));
    }
    let name = call.text(0);
    let mut settings = call.context.settings.as_ref().clone();
    match call.cell(1).as_text() {
        Some(value) => settings.set(name, value)?,
        None => settings.reset(name)?,
    }
    let value = settings.get(name)?;
    call.context.assignments.push(SettingAssignment {
        name: name.to_owned(),
        value: value.clone(),
        local: call.bool(2),
    });
    Ok(Cell::Text(value))
}

/// Cancels another session's statement or terminates the session; allowed for sessions of the same role, and for
/// superusers.
fn signal_session(call: &FunctionCall<'_>, terminate: bool) -> SqlResult<Cell> {
    let pid = i32::try_from(call.number(0)?).unwrap_or(0);
    let activity = &call.context.activity;
    let Some(session) = activity.sessions().into_iter().find(|session| session.pid == pid) else {
        return Ok(Cell::Bool(false));
    };
    if !call.context.role.superuser && session.role != call.context.role.name {
        let action = if terminate { "terminate" } else { "cancel query of" };
        return Err(SqlError::new(Condition::InsufficientPrivilege, format!("permission denied to {action} process")));
    }
    Ok(Cell::Bool(if terminate { activity.terminate(pid) } else { activity.cancel(pid) }))
}
