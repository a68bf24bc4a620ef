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
pub(crate) struct Patience {
    failed: HashMap<Oid, Failed>,
}

/// Backoff state of one table.
#[derive(Debug)]
struct Failed {
    /// Present pause between attempts.
    pause: Duration,
    /// Moment of the next attempt.
    until: Duration,
    /// Reason of the last failure.
    told: String,
}

impl Patience {
    /// Returns whether the table may be tried at the moment `now`.
    pub(crate) fn is_over(&self, table: Oid, now: Duration) -> bool {
        self.failed.get(&table).is_none_or(|failed| failed.until <= now)
    }

    /// Records a failed attempt, and returns whether its reason differs from that of the last one.
    pub(crate) fn failed(&mut self, table: Oid, reason: &str, now: Duration) -> bool {
        let known = self.failed.remove(&table);
        let pause = known.as_ref().map_or(PAUSE_FIRST, |known| (known.pause * 2).min(PAUSE_MAX));
        let is_news = known.is_none_or(|known| known.told != reason);
        self.failed.insert(table, Failed { pause, until: now + pause, told: reason.to_owned() });
        is_news
    }

    /// Records a successful attempt, and returns whether the one before had failed.
    pub(crate) fn succeeded(&mut self, table: Oid) -> bool {
        self.failed.remove(&table).is_some()
    }

    /// Returns the failure reason of the failing table with the lowest id.
    pub(crate) fn reason(&self) -> Option<String> {
        self.failed
            .iter()
            .min_by_key(|(table, _)| **table)
            .map(|(table, failed)| format!("table {}: {}", table.0, failed.told))
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
        let (mut patience, table) = (Patience::default(), Oid(1));
        let at = Duration::from_secs;
        assert!(patience.is_over(table, at(0)) && !patience.succeeded(table));
        assert!(patience.failed(table, "full", at(0)));
        assert!(!patience.is_over(table, at(0)) && patience.is_over(table, at(1)));
        assert!(patience.is_over(Oid(2), at(0)), "others need not wait");
        assert!(!patience.failed(table, "full", at(1)));
        assert!(!patience.is_over(table, at(2)) && patience.is_over(table, at(3)));
        assert!(patience.failed(table, "gone", at(3)), "another reason is news");
        assert_eq!(patience.reason().as_deref(), Some("table 1: gone"));
        for _ in 0..20 {
            patience.failed(table, "gone", at(100));
        }
        assert!(patience.is_over(table, at(160)));
        assert!(patience.succeeded(table) && patience.is_over(table, at(0)));
        assert_eq!(patience.reason(), None);
    }
}
