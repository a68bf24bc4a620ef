//! The settings of a session under PostgreSQL's names: SET checks them, SHOW prints them, statements read them.
//!
//! Knows no session: a [`Settings`] is copied freely, and a copy restores an earlier state. A setting that Kiln does
//! not honour accepts only its built-in value.
//!
//! Start at `definition.rs`, which lists every setting; `setting_value.rs` parses and prints values,
//! `parsed_settings_cache.rs` caches parsed values of settings that every statement reads.

mod definition;
mod parsed_settings_cache;
mod setting_value;

use std::collections::BTreeMap;
use std::time::Duration;

use syntax::statement::IsolationLevel;
use types::text::DateContext;
use types::{Condition, SessionZone, SqlError, SqlResult};

use self::definition::{ChangeLevel, DEFINITIONS, Definition};
use self::parsed_settings_cache::{ParsedCache, ParsedSettings};
pub use self::setting_value::parse_bool;
use self::setting_value::split_list;

#[cfg(test)]
mod tests;

/// PostgreSQL version that Kiln reports as `server_version` and whose catalogs it has.
pub const SERVER_VERSION: &str = "15.14";

/// Setting with the client's token for its next transaction.
const STATEMENT_TOKEN: &str = "kiln.statement_token";

/// All settings of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Canonical texts of values that differ from the built-in ones, by the setting's name in lower case.
    current: BTreeMap<String, String>,
    /// Values that RESET restores: from the start-up packet, the role or the configuration.
    reset_values: BTreeMap<String, String>,
    /// Cache of parsed values.
    parsed_cache: ParsedCache,
}

/// Row of `pg_settings` and SHOW ALL: one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    pub name: String,
    /// Value without its unit.
    pub value: String,
    /// Value with its unit, as SHOW prints it.
    pub display_value: String,
    pub unit: Option<&'static str>,
    pub description: &'static str,
    /// Context in which the setting can be changed: `internal`, `postmaster`, `superuser` or `user`.
    pub context: &'static str,
    /// Type of the value: `bool`, `integer`, `real`, `string` or `enum`.
    pub vartype: &'static str,
    /// Source of the value: `default`, `client` or `session`.
    pub source: &'static str,
    pub boot_value: String,
    pub reset_value: String,
}

impl Settings {
    /// Returns the name of a setting in PostgreSQL's spelling.
    ///
    /// # Errors
    /// `42704` for an unknown name that is not a custom one (words joined by a dot).
    pub fn canonical_name(name: &str) -> SqlResult<String> {
        let lower = name.to_ascii_lowercase();
        if let Some(definition) = definition::find(&lower) {
            return Ok(definition.name.to_owned());
        }
        if is_custom(&lower) {
            return Ok(lower);
        }
        Err(unknown_setting(name))
    }

    /// Returns the value as SHOW prints it.
    ///
    /// # Errors
    /// `42704` for an unknown name.
    pub fn get(&self, name: &str) -> SqlResult<String> {
        let lower = name.to_ascii_lowercase();
        match definition::find(&lower) {
            Some(definition) => Ok(definition.format(self.text(definition))),
            None => self.current.get(&lower).cloned().ok_or_else(|| unknown_setting(name)),
        }
    }

    /// Sets a setting to a new value.
    ///
    /// # Errors
    /// `42704` for an unknown name, `22023` for an invalid value, `0A000` for a value that Kiln does not support,
    /// `55P02` for a setting that sessions cannot change.
    pub fn set(&mut self, name: &str, value: &str) -> SqlResult<()> {
        self.parsed_cache.invalidate();
        let lower = name.to_ascii_lowercase();
        let Some(definition) = definition::find(&lower) else {
            if is_custom(&lower) {
                self.current.insert(lower, value.to_owned());
                return Ok(());
            }
            return Err(unknown_setting(name));
        };
        let text = definition.canonicalize(value)?;
        self.current.insert(lower, text);
        Ok(())
    }

    /// Sets a value that RESET restores: from the start-up packet, a role or the configuration.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn set_default(&mut self, name: &str, value: &str) -> SqlResult<()> {
        self.set(name, value)?;
        let lower = name.to_ascii_lowercase();
        if let Some(text) = self.current.get(&lower) {
            self.reset_values.insert(lower, text.clone());
        }
        Ok(())
    }

    /// Sets a read-only setting, such as `is_superuser` and `session_authorization`.
    pub fn set_internal(&mut self, name: &str, value: &str) {
        self.parsed_cache.invalidate();
        let lower = name.to_ascii_lowercase();
        self.reset_values.insert(lower.clone(), value.to_owned());
        self.current.insert(lower, value.to_owned());
    }

    /// Returns whether a setting has this value; panics for a name that does not exist.
    #[must_use]
    pub fn has_value(&self, name: &'static str, value: &str) -> bool {
        self.built_in_text(name) == value
    }

    /// Returns whether statements have the same plans under both: all settings are equal but those of the transaction.
    #[must_use]
    pub fn has_same_plan_relevant_settings(&self, other: &Self) -> bool {
        self.plan_relevant_settings().eq(other.plan_relevant_settings())
    }

    /// Returns all changed settings but those of the transaction.
    fn plan_relevant_settings(&self) -> impl Iterator<Item = (&String, &String)> {
        self.current.iter().filter(|(name, _)| !name.starts_with("transaction_") && *name != STATEMENT_TOKEN)
    }

    /// Returns `kiln.statement_token`, the client's token for its next transaction; `None` if it is empty.
    #[must_use]
    pub fn statement_token(&self) -> Option<&str> {
        self.parsed().has_statement_token.then(|| self.built_in_text(STATEMENT_TOKEN))
    }

    /// Checks that a setting can be set for all sessions of a role or database.
    ///
    /// # Errors
    /// `55P02` for a setting that only a session can have.
    pub fn check_settable_for_role(name: &str) -> SqlResult<()> {
        if name != STATEMENT_TOKEN {
            return Ok(());
        }
        let message = format!("parameter \"{name}\" cannot be set for a role or database");
        Err(SqlError::new(Condition::CantChangeRuntimeParam, message)
            .with_hint("A token is of one transaction: set it in the session."))
    }

    /// Restores the default value of one setting (RESET).
    ///
    /// # Errors
    /// `42704` for an unknown name, `55P02` for one that sessions cannot change.
    pub fn reset(&mut self, name: &str) -> SqlResult<()> {
        self.parsed_cache.invalidate();
        let lower = name.to_ascii_lowercase();
        if let Some(definition) = definition::find(&lower) {
            definition.check_changeable()?;
        } else if !is_custom(&lower) {
            return Err(unknown_setting(name));
        }
        match self.reset_values.get(&lower) {
            Some(text) => self.current.insert(lower, text.clone()),
            None => self.current.remove(&lower),
        };
        Ok(())
    }

    /// Restores the default values of all settings (RESET ALL).
    pub fn reset_all(&mut self) {
        self.parsed_cache.invalidate();
        self.current = self.reset_values.clone();
    }

    /// Returns every setting, sorted by name without regard to case.
    #[must_use]
    pub fn all(&self) -> Vec<SettingRow> {
        let mut rows: Vec<SettingRow> = DEFINITIONS.iter().map(|definition| self.row(definition)).collect();
        let custom = self.current.iter().filter(|(name, _)| definition::find(name).is_none());
        rows.extend(custom.map(|(name, value)| SettingRow {
            name: name.clone(),
            value: value.clone(),
            display_value: value.clone(),
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

    /// Returns the row of one setting.
    fn row(&self, definition: &'static Definition) -> SettingRow {
        let key = definition.name.to_ascii_lowercase();
        let value = self.text(definition);
        let reset_value = self.reset_values.get(&key).map_or(definition.boot, String::as_str);
        let source = match (self.current.get(&key), self.reset_values.get(&key)) {
            (None, _) => "default",
            (Some(current), Some(reset)) if current == reset => "client",
            (Some(_), _) => "session",
        };
        SettingRow {
            name: definition.name.to_owned(),
            value: value.to_owned(),
            display_value: definition.format(value),
            unit: definition.unit(),
            description: definition.description,
            context: definition.context(),
            vartype: definition.vartype(),
            source,
            boot_value: definition.boot.to_owned(),
            reset_value: reset_value.to_owned(),
        }
    }

    /// Returns the canonical text of a setting's value.
    fn text<'a>(&'a self, definition: &'static Definition) -> &'a str {
        let name = definition.name;
        let value = if name.bytes().any(|letter| letter.is_ascii_uppercase()) {
            self.current.get(&name.to_ascii_lowercase())
        } else {
            self.current.get(name)
        };
        value.map_or(definition.boot, String::as_str)
    }

    /// Returns the canonical text of a built-in setting; panics for a name that does not exist.
    fn built_in_text(&self, name: &'static str) -> &str {
        let definition = definition::find(name).expect("built-in settings are looked up by names from DEFINITIONS");
        self.text(definition)
    }

    /// Returns the schema names of `search_path`, in order, as written; `$user` is not resolved.
    #[must_use]
    pub fn search_path(&self) -> Vec<String> {
        split_list(self.built_in_text("search_path")).unwrap_or_default()
    }

    /// Returns `TimeZone`.
    #[must_use]
    pub fn zone(&self) -> SessionZone {
        self.parsed().zone
    }

    /// Returns `DateStyle`, in canonical form.
    #[must_use]
    pub fn date_style(&self) -> &str {
        self.built_in_text("datestyle")
    }

    /// Returns the context for parsing dates and times, with `now_us` as the time for words like `today`.
    #[must_use]
    pub fn date_context(&self, now_us: i64) -> DateContext {
        DateContext { order: self.parsed().date_order, zone: self.zone(), now_us: Some(now_us) }
    }

    /// Returns `statement_timeout`; `None` is no limit.
    #[must_use]
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.parsed().statement_timeout
    }

    /// Returns `lock_timeout`, the longest wait for each lock; `None` is no limit.
    #[must_use]
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.parsed().lock_timeout
    }

    /// Returns the longest time that a session may idle within a transaction; `None` is no limit.
    #[must_use]
    pub fn idle_in_transaction_session_timeout(&self) -> Option<Duration> {
        self.parsed().idle_in_transaction_session_timeout
    }

    /// Returns the longest time that a session may idle outside of transactions; `None` is no limit.
    #[must_use]
    pub fn idle_session_timeout(&self) -> Option<Duration> {
        self.parsed().idle_session_timeout
    }

    /// Returns the longest time that a transaction, statement or cursor may use a snapshot; `None` is no limit.
    #[must_use]
    pub fn max_snapshot_age(&self) -> Option<Duration> {
        self.parsed().max_snapshot_age
    }

    /// Returns the duration from which a statement is logged; `None` is never.
    #[must_use]
    pub fn log_min_duration_statement(&self) -> Option<Duration> {
        self.parsed().log_min_duration_statement
    }

    /// Returns the parsed values, from the cache.
    fn parsed(&self) -> &ParsedSettings {
        self.parsed_cache.get(self)
    }

    /// Returns `application_name`.
    #[must_use]
    pub fn application_name(&self) -> &str {
        self.built_in_text("application_name")
    }

    /// Returns `client_min_messages`, in lower case.
    #[must_use]
    pub fn client_min_messages(&self) -> &str {
        self.built_in_text("client_min_messages")
    }

    /// Returns `default_transaction_isolation`.
    #[must_use]
    pub fn default_isolation(&self) -> IsolationLevel {
        self.parsed().default_isolation
    }

    /// Returns `default_transaction_read_only`.
    #[must_use]
    pub fn default_read_only(&self) -> bool {
        self.parsed().default_read_only
    }

    /// Returns `kiln.engine`: whether the engine runs the plans that it supports.
    #[must_use]
    pub fn engine(&self) -> bool {
        self.built_in_text("kiln.engine") == "on"
    }

    /// Returns `kiln.fragment_cache`: whether aggregates of shards are cached and reused.
    #[must_use]
    pub fn fragment_cache(&self) -> bool {
        self.built_in_text("kiln.fragment_cache") == "on"
    }

    /// Returns `kiln.optimizer`: whether joins are ordered by cost.
    #[must_use]
    pub fn optimizer(&self) -> bool {
        self.built_in_text("kiln.optimizer") == "on"
    }

    /// Returns `kiln.priority`: `low`, `normal` or `high`.
    #[must_use]
    pub fn priority(&self) -> &str {
        self.built_in_text("kiln.priority")
    }

    /// Returns `enable_indexscan`: whether statements find the rows of a few keys by an index.
    #[must_use]
    pub fn index_scan(&self) -> bool {
        self.parsed().index_scan
    }

    /// Returns whether `plan_cache_mode` allows cached plans.
    #[must_use]
    pub fn caches_plans(&self) -> bool {
        self.built_in_text("plan_cache_mode") == "auto"
    }

    /// Returns `kiln.query_memory`, the memory limit of one query in bytes; `None` is no limit of its own.
    #[must_use]
    pub fn query_memory(&self) -> Option<usize> {
        let kilobytes =
            self.built_in_text("kiln.query_memory").parse::<usize>().ok().filter(|kilobytes| *kilobytes > 0);
        kilobytes.map(|kilobytes| kilobytes.saturating_mul(1024))
    }

    /// Returns `min_parallel_table_scan_size`, the bytes from which a query's scan is divided among workers.
    #[must_use]
    pub fn min_parallel_bytes(&self) -> u64 {
        self.built_in_text("min_parallel_table_scan_size").parse().unwrap_or(8192_u64).saturating_mul(1024)
    }

    /// Returns `kiln.join_exchange`: `cost`, `shuffle` or `broadcast`.
    #[must_use]
    pub fn join_exchange(&self) -> &str {
        self.built_in_text("kiln.join_exchange")
    }

    /// Returns `kiln.target_partitions`, the partitions of a query that run in parallel; `None` is one per thread.
    #[must_use]
    pub fn target_partitions(&self) -> Option<usize> {
        self.built_in_text("kiln.target_partitions").parse().ok().filter(|count| *count > 0)
    }

    /// Returns `kiln.direct_load_rows`, the most rows that one statement writes as fresh rows.
    #[must_use]
    pub fn direct_load_rows(&self) -> usize {
        self.built_in_text("kiln.direct_load_rows").parse().unwrap_or(10_000)
    }

    /// Returns `kiln.batch_size`, the rows per batch between operators.
    #[must_use]
    pub fn batch_size(&self) -> usize {
        self.built_in_text("kiln.batch_size").parse().unwrap_or(8192)
    }
}

/// Returns whether a name may be a custom setting of an application: words joined by dots, without the prefix `kiln.`.
fn is_custom(lower: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    lower.contains('.') && !lower.starts_with("kiln.") && lower.split('.').all(is_word)
}

fn unknown_setting(name: &str) -> SqlError {
    SqlError::new(Condition::UndefinedObject, format!("unrecognized configuration parameter \"{name}\""))
}

impl Definition {
    fn check_changeable(&self) -> SqlResult<()> {
        if self.source == ChangeLevel::Internal {
            return Err(SqlError::new(
                Condition::CantChangeRuntimeParam,
                format!("parameter \"{}\" cannot be changed", self.name),
            ));
        }
        Ok(())
    }
}
