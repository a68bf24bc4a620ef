//! Cache of parsed values of the settings that every statement reads.

use std::sync::OnceLock;
use std::time::Duration;

use syntax::statement::IsolationLevel;
use types::SessionZone;
use types::text::DateOrder;

use super::setting_value::date_order_of_style;
use super::{STATEMENT_TOKEN, Settings};

/// Parsed values of settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParsedSettings {
    pub(super) statement_timeout: Option<Duration>,
    pub(super) lock_timeout: Option<Duration>,
    pub(super) idle_in_transaction_session_timeout: Option<Duration>,
    pub(super) idle_session_timeout: Option<Duration>,
    pub(super) max_snapshot_age: Option<Duration>,
    pub(super) log_min_duration_statement: Option<Duration>,
    pub(super) zone: SessionZone,
    pub(super) date_order: DateOrder,
    pub(super) default_isolation: IsolationLevel,
    pub(super) default_read_only: bool,
    pub(super) index_scan: bool,
    pub(super) has_statement_token: bool,
}

/// Lazily filled cache of parsed values; ignored when settings are compared, as it follows from their texts.
#[derive(Debug, Clone, Default)]
pub(super) struct ParsedCache(OnceLock<ParsedSettings>);

impl ParsedCache {
    /// Returns the parsed values of `settings`, which must own this cache.
    pub(super) fn get(&self, settings: &Settings) -> &ParsedSettings {
        self.0.get_or_init(|| ParsedSettings::parse(settings))
    }

    /// Invalidates the cache; must be called whenever a text changes.
    pub(super) fn invalidate(&mut self) {
        self.0.take();
    }
}

impl PartialEq for ParsedCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ParsedCache {}

impl ParsedSettings {
    fn parse(settings: &Settings) -> Self {
        let milliseconds = |name| settings.built_in_text(name).parse::<u64>().ok().map(Duration::from_millis);
        let limit = |name| milliseconds(name).filter(|limit| !limit.is_zero());
        let is_on = |name| settings.built_in_text(name) == "on";
        Self {
            statement_timeout: limit("statement_timeout"),
            lock_timeout: limit("lock_timeout"),
            idle_in_transaction_session_timeout: limit("idle_in_transaction_session_timeout"),
            idle_session_timeout: limit("idle_session_timeout"),
            max_snapshot_age: limit("max_snapshot_age"),
            log_min_duration_statement: milliseconds("log_min_duration_statement"),
            zone: SessionZone::parse(settings.built_in_text("timezone")).unwrap_or(SessionZone::UTC),
            date_order: date_order_of_style(settings.date_style()),
            default_isolation: match settings.built_in_text("default_transaction_isolation") {
                "read uncommitted" => IsolationLevel::ReadUncommitted,
                "repeatable read" => IsolationLevel::RepeatableRead,
                "serializable" => IsolationLevel::Serializable,
                _ => IsolationLevel::ReadCommitted,
            },
            default_read_only: is_on("default_transaction_read_only"),
            index_scan: is_on("enable_indexscan"),
            has_statement_token: !settings.built_in_text(STATEMENT_TOKEN).is_empty(),
        }
    }
}
