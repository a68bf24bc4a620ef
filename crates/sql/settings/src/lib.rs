//! The settings of a session under PostgreSQL's names: what SET takes, SHOW gives and statements obey.
//!
//! Never knows whose session it is: a [`Settings`] is copied freely, and whoever has a copy can go back to it. A setting that Kiln does not honour
//! accepts only the value that it has.
//!
//! Start at `definition.rs`, which lists every setting; `value.rs` reads what SET is given, `obeyed.rs` gives what statements ask for.

mod definition;
mod obeyed;
mod value;

use std::collections::BTreeMap;
use std::time::Duration;

use syntax::statement::IsolationLevel;
use types::text::DateContext;
use types::{Condition, SessionZone, SqlError, SqlResult};

use self::definition::{DEFINITIONS, Definition, Source};
use self::obeyed::{Kept, Obeyed};
pub use self::value::parse_bool;
use self::value::split_list;

#[cfg(test)]
mod tests;

/// The version of PostgreSQL that Kiln's catalogs answer as: `server_version`.
pub const SERVER_VERSION: &str = "15.14";

/// The setting that says what a client calls what it writes next.
const STATEMENT_TOKEN: &str = "kiln.statement_token";

/// All settings of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Canonical texts of what differs from the built-in values, by the setting's name in lower case.
    current: BTreeMap<String, String>,
    /// What RESET goes back to: from the start-up packet, the role or the configuration.
    reset: BTreeMap<String, String>,
    kept: Kept,
}

/// One setting as `pg_settings` and SHOW ALL show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    pub name: String,
    /// Without its unit.
    pub value: String,
    /// As SHOW prints it: with its unit.
    pub shown: String,
    pub unit: Option<&'static str>,
    pub description: &'static str,
    /// Who may change it: `internal`, `postmaster`, `superuser`, `user`.
    pub context: &'static str,
    /// `bool`, `integer`, `real`, `string` or `enum`.
    pub vartype: &'static str,
    /// `default`, `client` or `session`.
    pub source: &'static str,
    pub boot_value: String,
    pub reset_value: String,
}

impl Settings {
    /// The name as PostgreSQL spells it.
    ///
    /// # Errors
    /// `42704` for a name that is no setting and cannot be one of an application (two words joined by a dot).
    pub fn canonical_name(name: &str) -> SqlResult<String> {
        let lower = name.to_ascii_lowercase();
        if let Some(definition) = definition::find(&lower) {
            return Ok(definition.name.to_owned());
        }
        if is_custom(&lower) {
            return Ok(lower);
        }
        Err(unknown(name))
    }

    /// The value as SHOW prints it.
    ///
    /// # Errors
    /// `42704` for an unknown name.
    pub fn get(&self, name: &str) -> SqlResult<String> {
        let lower = name.to_ascii_lowercase();
        match definition::find(&lower) {
            Some(definition) => Ok(definition.shown(self.text(definition))),
            None => self.current.get(&lower).cloned().ok_or_else(|| unknown(name)),
        }
    }

    /// Gives a setting a new value.
    ///
    /// # Errors
    /// `42704` for an unknown name, `22023` for a value it cannot have, `0A000` for one that Kiln does not honour, `55P02` for a
    /// setting that sessions cannot change.
    pub fn set(&mut self, name: &str, value: &str) -> SqlResult<()> {
        self.kept.forget();
        let lower = name.to_ascii_lowercase();
        let Some(definition) = definition::find(&lower) else {
            if is_custom(&lower) {
                self.current.insert(lower, value.to_owned());
                return Ok(());
            }
            return Err(unknown(name));
        };
        let text = definition.check(value)?;
        self.current.insert(lower, text);
        Ok(())
    }

    /// As [`Settings::set`], for RESET to go back to: what a start-up packet, a role or the configuration says.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn set_default(&mut self, name: &str, value: &str) -> SqlResult<()> {
        self.set(name, value)?;
        let lower = name.to_ascii_lowercase();
        if let Some(text) = self.current.get(&lower) {
            self.reset.insert(lower, text.clone());
        }
        Ok(())
    }

    /// Tells clients what they cannot set: `is_superuser`, `session_authorization` and their like.
    pub fn set_internal(&mut self, name: &str, value: &str) {
        self.kept.forget();
        let lower = name.to_ascii_lowercase();
        self.reset.insert(lower.clone(), value.to_owned());
        self.current.insert(lower, value.to_owned());
    }

    /// Whether the setting, which is known to exist, has this value.
    #[must_use]
    pub fn is(&self, name: &'static str, value: &str) -> bool {
        self.known(name) == value
    }

    /// Whether statements mean the same under both: all is equal but what tells of the transaction.
    #[must_use]
    pub fn plan_as(&self, other: &Self) -> bool {
        self.of_plans().eq(other.of_plans())
    }

    /// All but what tells of the transaction.
    fn of_plans(&self) -> impl Iterator<Item = (&String, &String)> {
        self.current.iter().filter(|(name, _)| !name.starts_with("transaction_") && *name != STATEMENT_TOKEN)
    }

    /// `kiln.statement_token`: what the client calls what it writes next; `None` where it does not matter.
    #[must_use]
    pub fn statement_token(&self) -> Option<&str> {
        self.obeyed().has_statement_token.then(|| self.known(STATEMENT_TOKEN))
    }

    /// Whether a setting can be fixed for all sessions of a role or database.
    ///
    /// # Errors
    /// `55P02` for one that belongs to a session alone.
    pub fn check_common(name: &str) -> SqlResult<()> {
        if name != STATEMENT_TOKEN {
            return Ok(());
        }
        let message = format!("parameter \"{name}\" cannot be set for a role or database");
        Err(SqlError::new(Condition::CantChangeRuntimeParam, message)
            .with_hint("A token is of one transaction: set it in the session."))
    }

    /// RESET of one setting.
    ///
    /// # Errors
    /// `42704` for an unknown name, `55P02` for one that sessions cannot change.
    pub fn reset(&mut self, name: &str) -> SqlResult<()> {
        self.kept.forget();
        let lower = name.to_ascii_lowercase();
        if let Some(definition) = definition::find(&lower) {
            definition.check_changeable()?;
        } else if !is_custom(&lower) {
            return Err(unknown(name));
        }
        match self.reset.get(&lower) {
            Some(text) => self.current.insert(lower, text.clone()),
            None => self.current.remove(&lower),
        };
        Ok(())
    }

    /// RESET ALL.
    pub fn reset_all(&mut self) {
        self.kept.forget();
        self.current = self.reset.clone();
    }

    /// Every setting, by name without regard to case.
    #[must_use]
    pub fn all(&self) -> Vec<SettingRow> {
        let mut rows: Vec<SettingRow> = DEFINITIONS.iter().map(|definition| self.row(definition)).collect();
        let custom = self.current.iter().filter(|(name, _)| definition::find(name).is_none());
        rows.extend(custom.map(|(name, value)| SettingRow {
            name: name.clone(),
            value: value.clone(),
            shown: value.clone(),
            unit: None,
            description: "",
            context: "user",
            vartype: "string",
            source: "session",
            boot_value: String::new(),
            reset_value: String::new(),
        }));
        rows.sort_by_key(|row| row.name.to_ascii_lowercase());
        rows
    }

    fn row(&self, definition: &'static Definition) -> SettingRow {
        let key = definition.name.to_ascii_lowercase();
        let value = self.text(definition);
        let reset_value = self.reset.get(&key).map_or(definition.boot, String::as_str);
        let source = match (self.current.get(&key), self.reset.get(&key)) {
            (None, _) => "default",
            (Some(current), Some(reset)) if current == reset => "client",
            (Some(_), _) => "session",
        };
        SettingRow {
            name: definition.name.to_owned(),
            value: value.to_owned(),
            shown: definition.shown(value),
            unit: definition.unit(),
            description: definition.description,
            context: definition.context(),
            vartype: definition.vartype(),
            source,
            boot_value: definition.boot.to_owned(),
            reset_value: reset_value.to_owned(),
        }
    }

    fn text<'a>(&'a self, definition: &'static Definition) -> &'a str {
        let name = definition.name;
        let value = if name.bytes().any(|letter| letter.is_ascii_uppercase()) {
            self.current.get(&name.to_ascii_lowercase())
        } else {
            self.current.get(name)
        };
        value.map_or(definition.boot, String::as_str)
    }

    /// The canonical text of a setting that is known to exist.
    fn known(&self, name: &'static str) -> &str {
        let definition = definition::find(name).expect("the name is one of the definitions");
        self.text(definition)
    }

    /// Names of schemas, in order, as written: `$user` among them.
    #[must_use]
    pub fn search_path(&self) -> Vec<String> {
        split_list(self.known("search_path")).unwrap_or_default()
    }

    /// `TimeZone`.
    #[must_use]
    pub fn zone(&self) -> SessionZone {
        self.obeyed().zone
    }

    /// `DateStyle` and `TimeZone`, as dates are read.
    #[must_use]
    pub fn date_style(&self) -> &str {
        self.known("datestyle")
    }

    /// How texts of dates and times are read, with `now_us` for words like `today`.
    #[must_use]
    pub fn date_context(&self, now_us: i64) -> DateContext {
        DateContext { order: self.obeyed().date_order, zone: self.zone(), now_us: Some(now_us) }
    }

    /// `None` is no limit.
    #[must_use]
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.obeyed().statement_timeout
    }

    /// How long a statement may wait for each lock; `None` is no limit.
    #[must_use]
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.obeyed().lock_timeout
    }

    /// How long a session may wait for its client within a transaction; `None` is no limit.
    #[must_use]
    pub fn idle_in_transaction_session_timeout(&self) -> Option<Duration> {
        self.obeyed().idle_in_transaction_session_timeout
    }

    /// How long a session may wait for its client outside of transactions; `None` is no limit.
    #[must_use]
    pub fn idle_session_timeout(&self) -> Option<Duration> {
        self.obeyed().idle_session_timeout
    }

    /// For how long anyone may go on seeing what was committed before; `None` is no limit.
    #[must_use]
    pub fn max_snapshot_age(&self) -> Option<Duration> {
        self.obeyed().max_snapshot_age
    }

    /// From how long on a statement is logged; `None` is never.
    #[must_use]
    pub fn log_min_duration_statement(&self) -> Option<Duration> {
        self.obeyed().log_min_duration_statement
    }

    fn obeyed(&self) -> &Obeyed {
        self.kept.of(self)
    }

    /// `application_name`.
    #[must_use]
    pub fn application_name(&self) -> &str {
        self.known("application_name")
    }

    /// `client_min_messages`, in lower case.
    #[must_use]
    pub fn client_min_messages(&self) -> &str {
        self.known("client_min_messages")
    }

    /// `default_transaction_isolation`.
    #[must_use]
    pub fn default_isolation(&self) -> IsolationLevel {
        self.obeyed().default_isolation
    }

    /// `default_transaction_read_only`.
    #[must_use]
    pub fn default_read_only(&self) -> bool {
        self.obeyed().default_read_only
    }

    /// `kiln.engine`: what the engine can run is its own.
    #[must_use]
    pub fn engine(&self) -> bool {
        self.known("kiln.engine") == "on"
    }

    /// `kiln.fragment_cache`: what was grouped of shards is kept and used again.
    #[must_use]
    pub fn fragment_cache(&self) -> bool {
        self.known("kiln.fragment_cache") == "on"
    }

    /// `kiln.optimizer`: join order by cost.
    #[must_use]
    pub fn optimizer(&self) -> bool {
        self.known("kiln.optimizer") == "on"
    }

    /// `kiln.priority`: `low`, `normal` or `high`.
    #[must_use]
    pub fn priority(&self) -> &str {
        self.known("kiln.priority")
    }

    /// `enable_indexscan`: whether rows of a few keys are found by an index.
    #[must_use]
    pub fn index_scan(&self) -> bool {
        self.obeyed().index_scan
    }

    /// `plan_cache_mode`: whether plans may be those of earlier statements.
    #[must_use]
    pub fn keeps_plans(&self) -> bool {
        self.known("plan_cache_mode") == "auto"
    }

    /// `kiln.query_memory`: the bytes that one query may have; `None` is no limit of its own.
    #[must_use]
    pub fn query_memory(&self) -> Option<usize> {
        let kilobytes = self.known("kiln.query_memory").parse::<usize>().ok().filter(|kilobytes| *kilobytes > 0);
        kilobytes.map(|kilobytes| kilobytes.saturating_mul(1024))
    }

    /// `min_parallel_table_scan_size`: the bytes that a query has to read to be divided among workers.
    #[must_use]
    pub fn min_parallel_bytes(&self) -> u64 {
        self.known("min_parallel_table_scan_size").parse().unwrap_or(8192_u64).saturating_mul(1024)
    }

    /// `kiln.join_exchange`: `cost`, `shuffle` or `broadcast`.
    #[must_use]
    pub fn join_exchange(&self) -> &str {
        self.known("kiln.join_exchange")
    }

    /// `kiln.target_partitions`: how many parts of a query run at the same time; `None` is one per thread.
    #[must_use]
    pub fn target_partitions(&self) -> Option<usize> {
        self.known("kiln.target_partitions").parse().ok().filter(|count| *count > 0)
    }

    /// `kiln.direct_load_rows`: rows that one statement adds as fresh ones at most.
    #[must_use]
    pub fn direct_load_rows(&self) -> usize {
        self.known("kiln.direct_load_rows").parse().unwrap_or(10_000)
    }

    /// `kiln.batch_size`: rows per batch between operators.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.known("kiln.batch_size").parse().unwrap_or(8192)
    }
}

/// Whether a name of no setting is one that applications may use for their own: `word.word`, not Kiln's.
fn is_custom(lower: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    lower.contains('.') && !lower.starts_with("kiln.") && lower.split('.').all(is_word)
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(Condition::UndefinedObject, format!("unrecognized configuration parameter \"{name}\""))
}

impl Definition {
    fn check_changeable(&self) -> SqlResult<()> {
        if self.source == Source::Internal {
            return Err(SqlError::new(
                Condition::CantChangeRuntimeParam,
                format!("parameter \"{}\" cannot be changed", self.name),
            ));
        }
        Ok(())
    }
}
