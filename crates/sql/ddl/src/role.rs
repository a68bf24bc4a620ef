//! CREATE ROLE, ALTER ROLE, DROP ROLE, and ALTER DATABASE with its settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use binder::{DefinePlan, Password};
use catalog::{Change, Database, Dependant, Role};
use session_context::StatementContext;
use settings::Settings;
use syntax::statement::{AlterDatabase, AlterRole, AlterRoleAction, CreateRole, Drop, RoleOption};
use types::{Condition, SqlError, SqlResult};

use super::name_resolution;

/// Creates a role; CREATE USER creates one that may log in.
///
/// # Errors
/// `42710` for an existing name, `42939` for a reserved one, `42501` without the right to create roles, `0A000` for
/// options that Kiln does not support.
pub fn create_role(context: &StatementContext, create: &CreateRole) -> SqlResult<DefinePlan> {
    let name = &create.name.value;
    if !(context.role.superuser || context.role.create_role) {
        return Err(permission_denied("permission denied to create role"));
    }
    refuse_reserved(name)?;
    if context.snapshot.role_by_name(name).is_some() {
        return Err(duplicate_role(name));
    }
    let mut role = Role {
        oid: (context.new_oid)(),
        name: name.clone(),
        superuser: false,
        login: create.is_user,
        create_role: false,
        create_db: false,
        inherit: true,
        connection_limit: -1,
        valid_until: None,
        scram: None,
        settings: BTreeMap::new(),
        comment: None,
    };
    let passwords = apply_options(context, &mut role, &create.options)?;
    if role.superuser && !context.role.superuser {
        return Err(permission_denied("must be superuser to create superusers"));
    }
    let changes = vec![Change::PutRole(Arc::new(role))];
    Ok(DefinePlan { changes, command_tag: "CREATE ROLE".to_owned(), passwords, ..DefinePlan::default() })
}

/// Changes a role's options, name or settings.
///
/// # Errors
/// The errors of [`create_role`]; `42704` for an unknown role or setting.
pub fn alter_role(context: &StatementContext, alter: &AlterRole) -> SqlResult<DefinePlan> {
    let old = name_resolution::resolve_role(context, &alter.role)?;
    let mut role = Role::clone(&old);
    let mut passwords = Vec::new();
    match &alter.action {
        AlterRoleAction::Options(options) => {
            let own_password =
                old.oid == context.role.oid && options.iter().all(|option| matches!(option, RoleOption::Password(_)));
            if !own_password {
                check_can_alter(context, &old)?;
            }
            passwords = apply_options(context, &mut role, options)?;
            if role.superuser != old.superuser && !context.role.superuser {
                return Err(permission_denied(
                    "must be superuser to alter superuser roles or change superuser attribute",
                ));
            }
        }
        AlterRoleAction::RenameTo(new) => {
            check_rename(context, &old, &new.value)?;
            role.name.clone_from(&new.value);
        }
        AlterRoleAction::Set { name, value } => {
            check_can_set(context, &old)?;
            set_setting(&mut role.settings, name, value.as_deref())?;
        }
        AlterRoleAction::ResetAll => {
            check_can_set(context, &old)?;
            role.settings.clear();
        }
    }
    let changes = vec![Change::PutRole(Arc::new(role))];
    Ok(DefinePlan { changes, command_tag: "ALTER ROLE".to_owned(), passwords, ..DefinePlan::default() })
}

/// Drops roles that own no objects.
///
/// # Errors
/// `2BP01` with the objects that they own, `55006` for a role in use, `42704` for an unknown one, `42501` without the
/// right to drop it.
pub(crate) fn drop_role(context: &StatementContext, drop: &Drop) -> SqlResult<DefinePlan> {
    let mut plan = DefinePlan { command_tag: "DROP ROLE".to_owned(), ..DefinePlan::default() };
    if !(context.role.superuser || context.role.create_role) {
        return Err(permission_denied("permission denied to drop role"));
    }
    for name in &drop.names {
        let name = name_resolution::join_name(name);
        let Some(role) = context.snapshot.role_by_name(&name) else {
            if !drop.if_exists {
                return Err(SqlError::new(Condition::UndefinedObject, format!("role \"{name}\" does not exist")));
            }
            let message = format!("role \"{name}\" does not exist, skipping");
            plan.notices.push(SqlError::new(Condition::SuccessfulCompletion, message));
            continue;
        };
        check_droppable(context, role)?;
        if !plan.changes.contains(&Change::DropRole(role.oid)) {
            plan.changes.push(Change::DropRole(role.oid));
        }
    }
    Ok(plan)
}

fn check_droppable(context: &StatementContext, role: &Role) -> SqlResult<()> {
    let in_use = |what: &str| SqlError::new(Condition::ObjectInUse, format!("{what} cannot be dropped"));
    if role.oid == context.role.oid {
        return Err(in_use("current user"));
    }
    if role.oid == context.session_role.oid {
        return Err(in_use("session user"));
    }
    if role.superuser && !context.role.superuser {
        return Err(permission_denied("must be superuser to drop superusers"));
    }
    if role.oid == Role::BOOTSTRAP {
        let message = format!("cannot drop role {} because it is required by the database system", role.name);
        return Err(SqlError::new(Condition::DependentObjectsStillExist, message));
    }
    let owned: Vec<String> = context
        .snapshot
        .dependants(role.oid)
        .iter()
        .map(|dependant| match dependant {
            Dependant::Table { oid, .. } => format!("owner of table {}", name_resolution::display_name(context, *oid)),
            Dependant::View { oid, .. } => format!("owner of view {}", name_resolution::display_name(context, *oid)),
            Dependant::Sequence { oid, .. } => {
                format!("owner of sequence {}", name_resolution::display_name(context, *oid))
            }
            other => format!("owner of {other}"),
        })
        .collect();
    if owned.is_empty() {
        return Ok(());
    }
    let message = format!("role \"{}\" cannot be dropped because some objects depend on it", role.name);
    Err(SqlError::new(Condition::DependentObjectsStillExist, message).with_detail(owned.join("\n")))
}

/// Changes the database's settings, which are the defaults of new sessions.
///
/// # Errors
/// `3D000` for another database, `42501` for a role that does not own it, and errors of the setting.
pub fn alter_database(context: &StatementContext, alter: &AlterDatabase) -> SqlResult<DefinePlan> {
    check_database_name(context, &alter.name.value)?;
    let mut database = Database::clone(context.snapshot.database());
    name_resolution::check_owner(context, database.owner, "database", &database.name)?;
    match &alter.setting {
        Some((name, value)) => set_setting(&mut database.settings, name, value.as_deref())?,
        None => database.settings.clear(),
    }
    let changes = vec![Change::PutDatabase(Arc::new(database))];
    Ok(DefinePlan { changes, command_tag: "ALTER DATABASE".to_owned(), ..DefinePlan::default() })
}

/// Checks that the name is that of the only database (`3D000`).
pub(super) fn check_database_name(context: &StatementContext, name: &str) -> SqlResult<()> {
    if context.snapshot.database().name == name {
        return Ok(());
    }
    Err(SqlError::new(Condition::UndefinedDatabase, format!("database \"{name}\" does not exist")))
}

/// Checks that the statement's role may alter `role` (`42501`).
pub(super) fn check_can_alter(context: &StatementContext, role: &Role) -> SqlResult<()> {
    if context.role.superuser {
        return Ok(());
    }
    if role.superuser {
        return Err(permission_denied("must be superuser to alter superuser roles or change superuser attribute"));
    }
    if context.role.create_role { Ok(()) } else { Err(permission_denied("permission denied")) }
}

/// Checks that the statement's role may change the settings of `role`; every role may change its own (`42501`).
fn check_can_set(context: &StatementContext, role: &Role) -> SqlResult<()> {
    if role.oid == context.role.oid { Ok(()) } else { check_can_alter(context, role) }
}

fn check_rename(context: &StatementContext, old: &Role, new: &str) -> SqlResult<()> {
    let fixed = |what: &str| SqlError::new(Condition::FeatureNotSupported, format!("{what} cannot be renamed"));
    if old.oid == context.session_role.oid {
        return Err(fixed("session user"));
    }
    if old.oid == context.role.oid {
        return Err(fixed("current user"));
    }
    refuse_reserved(new)?;
    if context.snapshot.role_by_name(new).is_some() {
        return Err(duplicate_role(new));
    }
    if old.superuser && !context.role.superuser {
        return Err(permission_denied("must be superuser to rename superusers"));
    }
    if context.role.superuser || context.role.create_role {
        return Ok(());
    }
    Err(permission_denied("permission denied to rename role"))
}

/// Applies options to the role; passwords are returned, to be turned into SCRAM verifiers later.
fn apply_options(context: &StatementContext, role: &mut Role, options: &[RoleOption]) -> SqlResult<Vec<Password>> {
    let mut passwords = Vec::new();
    for option in options {
        match option {
            RoleOption::Superuser(on) => role.superuser = *on,
            RoleOption::CreateDb(on) => role.create_db = *on,
            RoleOption::CreateRole(on) => role.create_role = *on,
            RoleOption::Inherit(on) => role.inherit = *on,
            RoleOption::Login(on) => role.login = *on,
            RoleOption::Replication(false) | RoleOption::BypassRls(false) => {}
            RoleOption::Replication(true) => return Err(SqlError::unsupported("REPLICATION")),
            RoleOption::BypassRls(true) => return Err(SqlError::unsupported("BYPASSRLS")),
            RoleOption::ConnectionLimit(limit) => role.connection_limit = connection_limit(*limit)?,
            RoleOption::Password(text) => passwords.push(Password { role: role.oid, text: text.clone() }),
            RoleOption::ValidUntil(text) => role.valid_until = valid_until(context, text)?,
        }
    }
    Ok(passwords)
}

fn connection_limit(limit: i64) -> SqlResult<i32> {
    let limit = i32::try_from(limit).ok().filter(|limit| *limit >= -1);
    limit.ok_or_else(|| SqlError::new(Condition::InvalidParameterValue, "invalid connection limit"))
}

/// Parses VALID UNTIL as microseconds since 1970 UTC; `None` for `infinity`.
fn valid_until(context: &StatementContext, text: &str) -> SqlResult<Option<i64>> {
    if text.trim().eq_ignore_ascii_case("infinity") {
        return Ok(None);
    }
    types::text::parse_timestamptz_in(text, &context.settings.date_context(context.statement_us)).map(Some)
}

/// Checks a setting and stores it in `settings`; `None` removes it.
fn set_setting(settings: &mut BTreeMap<String, String>, name: &str, value: Option<&str>) -> SqlResult<()> {
    let name = Settings::canonical_name(name)?;
    Settings::check_settable_for_role(&name)?;
    match value {
        Some(value) => {
            let mut checked = Settings::default();
            checked.set(&name, value)?;
            settings.insert(name, value.to_owned());
        }
        None => {
            settings.remove(&name);
        }
    }
    Ok(())
}

/// Refuses reserved role names (`42939`).
fn refuse_reserved(name: &str) -> SqlResult<()> {
    let reserved = || SqlError::new(Condition::ReservedName, format!("role name \"{name}\" is reserved"));
    if name.starts_with("pg_") {
        return Err(reserved().with_detail("Role names starting with \"pg_\" are reserved."));
    }
    if name == "public" || name == "none" { Err(reserved()) } else { Ok(()) }
}

fn duplicate_role(name: &str) -> SqlError {
    SqlError::new(Condition::DuplicateObject, format!("role \"{name}\" already exists"))
}

fn permission_denied(message: &str) -> SqlError {
    SqlError::new(Condition::InsufficientPrivilege, message)
}
