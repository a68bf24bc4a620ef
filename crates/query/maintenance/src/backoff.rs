//! Exponential backoff per table after failed flushes, and detection of new failure reasons; pure.

use std::collections::HashMap;
use std::time::Duration;

use types::Oid;

/// Pause after the first failure; it doubles with each further one, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Backoff state of the tables whose last attempt failed.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failed: HashMap<Oid, FailedTable>,
}

/// Backoff state of one table.
#[derive(Debug)]
struct FailedTable {
    /// Present pause between attempts.
    pause: Duration,
    /// Moment of the next attempt.
    retry_at: Duration,
    /// Reason of the last failure.
    reason: String,
}

impl Backoff {
    /// Returns whether the table may be tried at the moment `now`.
    pub(crate) fn may_retry(&self, table: Oid, now: Duration) -> bool {
        self.failed.get(&table).is_none_or(|failed| failed.retry_at <= now)
    }

    /// Records a failed attempt, and returns whether its reason differs from that of the last one.
    pub(crate) fn record_failure(&mut self, table: Oid, reason: &str, now: Duration) -> bool {
        let known = self.failed.remove(&table);
        let pause = known.as_ref().map_or(PAUSE_FIRST, |known| (known.pause * 2).min(PAUSE_MAX));
        let is_news = known.is_none_or(|known| known.reason != reason);
        self.failed.insert(table, FailedTable { pause, retry_at: now + pause, reason: reason.to_owned() });
        is_news
    }

    /// Records a successful attempt, and returns whether the one before had failed.
    pub(crate) fn record_success(&mut self, table: Oid) -> bool {
        self.failed.remove(&table).is_some()
    }

    /// Returns the failure reason of the failing table with the lowest id.
    pub(crate) fn failure_reason(&self) -> Option<String> {
        self.failed
            .iter()
            .min_by_key(|(table, _)| **table)
            .map(|(table, failed)| format!("table {}: {}", table.0, failed.reason))
    }

    /// Removes the tables for which `kept` returns false.
    pub(crate) fn retain(&mut self, kept: impl Fn(Oid) -> bool) {
        self.failed.retain(|table, _| kept(*table));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_the_same_reason_is_told_once() {
        let (mut patience, table) = (Backoff::default(), Oid(1));
        let at = Duration::from_secs;
        assert!(patience.may_retry(table, at(0)) && !patience.record_success(table));
        assert!(patience.record_failure(table, "full", at(0)));
        assert!(!patience.may_retry(table, at(0)) && patience.may_retry(table, at(1)));
        assert!(patience.may_retry(Oid(2), at(0)), "others need not wait");
        assert!(!patience.record_failure(table, "full", at(1)));
        assert!(!patience.may_retry(table, at(2)) && patience.may_retry(table, at(3)));
        assert!(patience.record_failure(table, "gone", at(3)), "another reason is news");
        assert_eq!(patience.failure_reason().as_deref(), Some("table 1: gone"));
        for _ in 0..20 {
            patience.record_failure(table, "gone", at(100));
        }
        assert!(patience.may_retry(table, at(160)));
        assert!(patience.record_success(table) && patience.may_retry(table, at(0)));
        assert_eq!(patience.failure_reason(), None);
    }
}
