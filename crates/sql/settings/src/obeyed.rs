//! Cache of parsed values of the settings that every statement reads.

use std::sync::OnceLock;
use std::time::Duration;

use syntax::statement::IsolationLevel;
use types::SessionZone;
use types::text::DateOrder;

use super::value::date_order;
use super::{STATEMENT_TOKEN, Settings};

/// Parsed values of settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Obeyed {
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
pub(super) struct Kept(OnceLock<Obeyed>);

impl Kept {
    /// Returns the parsed values of `settings`, which must own this cache.
    pub(super) fn of(&self, settings: &Settings) -> &Obeyed {
        self.0.get_or_init(|| Obeyed::of(settings))
    }

    /// Invalidates the cache; must be called whenever a text changes.
    pub(super) fn forget(&mut self) {
        self.0.take();
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

impl Obeyed {
    fn of(settings: &Settings) -> Self {
        let milliseconds = |name| settings.known(name).parse::<u64>().ok().map(Duration::from_millis);
        let limit = |name| milliseconds(name).filter(|limit| !limit.is_zero());
        let is_on = |name| settings.known(name) == "on";
        Self {
            statement_timeout: limit("statement_timeout"),
            lock_timeout: limit("lock_timeout"),
            idle_in_transaction_session_timeout: limit("idle_in_transaction_session_timeout"),
            idle_session_timeout: limit("idle_session_timeout"),
            max_snapshot_age: limit("max_snapshot_age"),
            log_min_duration_statement: milliseconds("log_min_duration_statement"),
            zone: SessionZone::parse(settings.known("timezone")).unwrap_or(SessionZone::UTC),
            date_order: date_order(settings.date_style()),
            default_isolation: match settings.known("default_transaction_isolation") {
                "read uncommitted" => IsolationLevel::ReadUncommitted,
                "repeatable read" => IsolationLevel::RepeatableRead,
                "serializable" => IsolationLevel::Serializable,
                _ => IsolationLevel::ReadCommitted,
            },
            default_read_only: is_on("default_transaction_read_only"),
            index_scan: is_on("enable_indexscan"),
            has_statement_token: !settings.known(STATEMENT_TOKEN).is_empty(),
        }
    }
}
