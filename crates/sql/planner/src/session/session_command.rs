//! Turns a parsed command into one that a session can run: checks settings, resolves types, plans queries.

use binder::{Binder, SessionCommand};
use catalog::Relation;
use settings::Settings;
use syntax::statement::{DeclareCursor, SessionStatement};
use types::{SqlResult, SqlType};

use super::show;

/// Plans a session command.
///
/// # Errors
/// `42704` for an unknown setting, `22023` for an invalid value; errors of a query.
pub(crate) fn plan(
    binder: &Binder<'_>,
    command: &SessionStatement,
    parameter_types: &[Option<SqlType>],
) -> SqlResult<SessionCommand> {
    let settings = &binder.context().settings;
    Ok(match command.clone() {
        // PostgreSQL also accepts SET ROLE and SET SESSION AUTHORIZATION as settings.
        SessionStatement::Set { name, value, local } if name == "role" => {
            SessionCommand::SetRole { role: value.filter(|role| role != "none"), local }
        }
        SessionStatement::Set { name, value, local } if name == "session_authorization" => {
            SessionCommand::SetSessionAuthorization { role: value, local }
        }
        SessionStatement::Set { name, value, local } => {
            let name = check_setting(settings, &name, value.as_deref())?;
            SessionCommand::Set { name, value, local }
        }
        SessionStatement::Reset(None) => SessionCommand::Reset(None),
        SessionStatement::Reset(Some(name)) => SessionCommand::Reset(Some(check_setting(settings, &name, None)?)),
        SessionStatement::SetTransaction { modes, session } => SessionCommand::SetTransaction { modes, session },
        SessionStatement::SetRole { role, local } => SessionCommand::SetRole { role, local },
        SessionStatement::SetSessionAuthorization { role, local } => {
            SessionCommand::SetSessionAuthorization { role, local }
        }
        SessionStatement::Show(Some(name)) => SessionCommand::Show(Box::new(show::show_setting(binder, &name)?)),
        SessionStatement::Show(None) => SessionCommand::Show(Box::new(show::show_all(binder)?)),
        SessionStatement::Begin(modes) => SessionCommand::Begin(modes),
        SessionStatement::Commit { chain } => SessionCommand::Commit { chain },
        SessionStatement::Rollback { chain } => SessionCommand::Rollback { chain },
        SessionStatement::Savepoint(name) => SessionCommand::Savepoint(name),
        SessionStatement::RollbackTo(name) => SessionCommand::RollbackTo(name),
        SessionStatement::Release(name) => SessionCommand::Release(name),
        SessionStatement::Prepare { name, types, statement } => {
            let found = |written| match binder.sql_type(written)? {
                SqlType::Unknown => Ok(None),
                known => Ok(Some(known)),
            };
            let types = types.iter().map(found).collect::<SqlResult<Vec<_>>>()?;
            SessionCommand::Prepare { name, types, statement }
        }
        SessionStatement::Execute { name, arguments } => SessionCommand::Execute { name, arguments },
        SessionStatement::Deallocate(name) => SessionCommand::Deallocate(name),
        SessionStatement::Declare(DeclareCursor { name, query, hold, scroll, binary }) => {
            let query = Box::new(binder.plan_query(&query, parameter_types)?);
            SessionCommand::Declare { name, query, hold, scroll, binary }
        }
        SessionStatement::Fetch { cursor, direction } => SessionCommand::Fetch { cursor, direction },
        SessionStatement::Move { cursor, direction } => SessionCommand::Move { cursor, direction },
        SessionStatement::Close(name) => SessionCommand::Close(name),
        SessionStatement::Discard(what) => SessionCommand::Discard(what),
        SessionStatement::Maintain { command_tag: tag, tables } => {
            let mut named = Vec::with_capacity(tables.len());
            for table in &tables {
                if let Relation::Table(table) = binder.resolve_relation(table)?
                    && table.external.is_none()
                {
                    named.push(table.oid);
                }
            }
            if tag == "VACUUM" {
                let all = tables.is_empty();
                SessionCommand::Vacuum { tables: (!all).then_some(named) }
            } else {
                SessionCommand::NoEffect(tag)
            }
        }
        SessionStatement::CheckStorage => SessionCommand::CheckStorage,
        SessionStatement::NoOp(tag) => SessionCommand::NoEffect(tag),
    })
}

/// Checks that a setting can have the value (or be reset), and returns its canonical name.
fn check_setting(settings: &Settings, name: &str, value: Option<&str>) -> SqlResult<String> {
    let canonical = Settings::canonical_name(name)?;
    let mut settings = settings.clone();
    match value {
        Some(value) => settings.set(name, value)?,
        None => settings.reset(name)?,
    }
    Ok(canonical)
}
