//! Turns a parsed command into one that a session can run: checks settings, resolves types, plans queries.

use binder::{Binder, SessionCommand};
use catalog::Relation;
use settings::Settings;
use syntax::statement::{Command, DeclareCursor};
use types::{SqlResult, SqlType};

use super::show;

/// Plans a session command.
///
/// # Errors
/// `42704` for an unknown setting, `22023` for an invalid value; errors of a query.
pub(crate) fn plan(
    binder: &Binder<'_>,
    command: &Command,
    parameter_types: &[Option<SqlType>],
) -> SqlResult<SessionCommand> {
    let settings = &binder.context().settings;
    Ok(match command.clone() {
        // PostgreSQL also accepts SET ROLE and SET SESSION AUTHORIZATION as settings.
        Command::Set { name, value, local } if name == "role" => {
            SessionCommand::SetRole { role: value.filter(|role| role != "none"), local }
        }
        Command::Set { name, value, local } if name == "session_authorization" => {
            SessionCommand::SetSessionAuthorization { role: value, local }
        }
        Command::Set { name, value, local } => {
            let name = checked(settings, &name, value.as_deref())?;
            SessionCommand::Set { name, value, local }
        }
        Command::Reset(None) => SessionCommand::Reset(None),
        Command::Reset(Some(name)) => SessionCommand::Reset(Some(checked(settings, &name, None)?)),
        Command::SetTransaction { modes, session } => SessionCommand::SetTransaction { modes, session },
        Command::SetRole { role, local } => SessionCommand::SetRole { role, local },
        Command::SetSessionAuthorization { role, local } => SessionCommand::SetSessionAuthorization { role, local },
        Command::Show(Some(name)) => SessionCommand::Show(Box::new(show::one(binder, &name)?)),
        Command::Show(None) => SessionCommand::Show(Box::new(show::all(binder)?)),
        Command::Begin(modes) => SessionCommand::Begin(modes),
        Command::Commit { chain } => SessionCommand::Commit { chain },
        Command::Rollback { chain } => SessionCommand::Rollback { chain },
        Command::Savepoint(name) => SessionCommand::Savepoint(name),
        Command::RollbackTo(name) => SessionCommand::RollbackTo(name),
        Command::Release(name) => SessionCommand::Release(name),
        Command::Prepare { name, types, statement } => {
            let found = |written| match binder.sql_type(written)? {
                SqlType::Unknown => Ok(None),
                known => Ok(Some(known)),
            };
            let types = types.iter().map(found).collect::<SqlResult<Vec<_>>>()?;
            SessionCommand::Prepare { name, types, statement }
        }
        Command::Execute { name, arguments } => SessionCommand::Execute { name, arguments },
        Command::Deallocate(name) => SessionCommand::Deallocate(name),
        Command::Declare(DeclareCursor { name, query, hold, scroll, binary }) => {
            let query = Box::new(binder.query(&query, parameter_types)?);
            SessionCommand::Declare { name, query, hold, scroll, binary }
        }
        Command::Fetch { cursor, direction } => SessionCommand::Fetch { cursor, direction },
        Command::Move { cursor, direction } => SessionCommand::Move { cursor, direction },
        Command::Close(name) => SessionCommand::Close(name),
        Command::Discard(what) => SessionCommand::Discard(what),
        Command::Maintain { tag, tables } => {
            let mut named = Vec::with_capacity(tables.len());
            for table in &tables {
                if let Relation::Table(table) = binder.relation(table)?
                    && table.external.is_none()
                {
                    named.push(table.oid);
                }
            }
            if tag == "VACUUM" {
                let all = tables.is_empty();
                SessionCommand::Vacuum { tables: (!all).then_some(named) }
            } else {
                SessionCommand::Nothing(tag)
            }
        }
        Command::CheckStorage => SessionCommand::CheckStorage,
        Command::Nothing(tag) => SessionCommand::Nothing(tag),
    })
}

/// Checks that a setting can have the value (or be reset), and returns its canonical name.
fn checked(settings: &Settings, name: &str, value: Option<&str>) -> SqlResult<String> {
    let canonical = Settings::canonical_name(name)?;
    let mut settings = settings.clone();
    match value {
        Some(value) => settings.set(name, value)?,
        None => settings.reset(name)?,
    }
    Ok(canonical)
}
