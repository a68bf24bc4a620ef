//! `pg_authid` and the views over it: roles and their settings.

use ::catalog::Role;

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::{TableDefinition, no_rows};
use super::definition_constructors::{catalog, view};

const ROLE_COLUMNS: &str = "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, \
     rolcanlogin bool, rolreplication bool = f, rolconnlimit int4, rolpassword text = ********, \
     rolvaliduntil timestamptz, rolbypassrls bool, rolconfig text[], oid oid";
const USER_COLUMNS: &str = "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool = f, \
     usebypassrls bool, passwd text = ********, valuntil timestamptz, useconfig text[]";

pub(super) const TABLES: &[TableDefinition] = &[
    catalog(
        1260,
        "pg_authid",
        "Roles; passwords are hidden.",
        "oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, \
         rolreplication bool = f, rolbypassrls bool, rolconnlimit int4, rolpassword text = ********, rolvaliduntil timestamptz",
        authid,
    ),
    view(12_000, "pg_roles", "Roles with their settings.", ROLE_COLUMNS, roles),
    view(12_005, "pg_shadow", "Roles that may log in.", USER_COLUMNS, users),
    view(12_014, "pg_user", "Roles that may log in.", USER_COLUMNS, users),
    view(12_010, "pg_group", "Roles that may not log in.", "groname name, grosysid oid, grolist oid[]", groups),
    catalog(
        1261,
        "pg_auth_members",
        "Memberships in roles; always empty.",
        "roleid oid, member oid, grantor oid, admin_option bool",
        no_rows,
    ),
    catalog(
        2964,
        "pg_db_role_setting",
        "Settings of roles and of the database.",
        "setdatabase oid = 0, setrole oid, setconfig text[]",
        role_settings,
    ),
    catalog(
        826,
        "pg_default_acl",
        "Default privileges; always empty.",
        "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl aclitem[]",
        no_rows,
    ),
    catalog(
        3394,
        "pg_init_privs",
        "Initial privileges; always empty.",
        "objoid oid, classoid oid, objsubid int4, privtype char, initprivs aclitem[]",
        no_rows,
    ),
    catalog(
        6243,
        "pg_parameter_acl",
        "Privileges on settings; always empty.",
        "oid oid, parname text, paracl aclitem[]",
        no_rows,
    ),
];

fn authid(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for role in source.state().roles() {
        row!(rows, oid: role.oid, rolname: &role.name, rolsuper: role.superuser, rolinherit: role.inherit,
            rolcreaterole: role.create_role, rolcreatedb: role.create_db, rolcanlogin: role.login,
            rolbypassrls: role.superuser, rolconnlimit: role.connection_limit, rolvaliduntil: role.valid_until);
    }
}

fn roles(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for role in source.state().roles() {
        row!(rows, rolname: &role.name, rolsuper: role.superuser, rolinherit: role.inherit,
            rolcreaterole: role.create_role, rolcreatedb: role.create_db, rolcanlogin: role.login,
            rolconnlimit: role.connection_limit, rolvaliduntil: role.valid_until, rolbypassrls: role.superuser,
            rolconfig: configuration(role), oid: role.oid);
    }
}

fn users(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for role in source.state().roles().filter(|role| role.login) {
        row!(rows, usename: &role.name, usesysid: role.oid, usecreatedb: role.create_db, usesuper: role.superuser,
            usebypassrls: role.superuser, valuntil: role.valid_until, useconfig: configuration(role));
    }
}

fn groups(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for role in source.state().roles().filter(|role| !role.login) {
        row!(rows, groname: &role.name, grosysid: role.oid, grolist: Vec::<u32>::new());
    }
}

fn role_settings(source: &RowSource<'_>, rows: &mut RowBuilder) {
    for role in source.state().roles() {
        if let Some(settings) = configuration(role) {
            row!(rows, setrole: role.oid, setconfig: settings);
        }
    }
}

/// Returns `name=value` for each setting of ALTER ROLE … SET; `None` if there is none.
fn configuration(role: &Role) -> Option<Vec<String>> {
    let settings: Vec<String> = role.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!settings.is_empty()).then_some(settings)
}
