//! Backpressure on writers: statements are delayed the more fresh rows wait for a flush, and stopped at a limit.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::{CatalogState, Storage, Table};
use parking_lot::Mutex;
use txn::Transactions;
use types::{Clock, Oid};

/// Interval between counts of the fresh rows while no writer is delayed.
const COUNT_INTERVAL: Duration = Duration::from_millis(50);
/// Time without any delay after which flushing counts as caught up.
const CAUGHT_UP_AFTER: Duration = Duration::from_secs(60);
/// Longest delay of a statement below the limit.
const DELAY_MAX: Duration = Duration::from_millis(500);

/// Limits of fresh rows at which writers wait for a flush; from half of a limit on they are delayed.
#[derive(Debug, Clone, Copy)]
pub struct FreshLimits {
    /// Fresh rows of one table.
    pub rows: u64,
    /// Memory of the fresh rows of all tables together, in bytes, without tables with row storage.
    pub bytes: u64,
}

/// Verdict on a statement that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ThrottleVerdict {
    /// Proceeds at once.
    #[default]
    Proceed,
    /// Proceeds after this delay.
    Delay(Duration),
    /// Waits until rows have been flushed.
    WaitForFlush,
}

/// Returns the verdict for `amount` of at most `limit`: the delay grows linearly from half of the limit on.
fn verdict_for(amount: u64, limit: u64) -> ThrottleVerdict {
    let free = limit / 2;
    if limit <= amount {
        return ThrottleVerdict::WaitForFlush;
    }
    if amount <= free {
        return ThrottleVerdict::Proceed;
    }
    let thousandths = u128::from(amount - free) * 1_000 / u128::from(limit - free);
    ThrottleVerdict::Delay(
        DELAY_MAX * u32::try_from(thousandths).expect("the fraction is below 1,000 thousandths") / 1_000,
    )
}

/// Backpressure on writers of tables whose fresh rows arrive faster than they are flushed.
///
/// Verdicts are cached for 50 ms while no writer is delayed.
#[derive(Debug)]
pub struct WriteThrottle {
    transactions: Arc<Transactions>,
    clock: Arc<dyn Clock>,
    /// Limits of the server; no writer is delayed before they are set.
    limits: OnceLock<FreshLimits>,
    last_count: Mutex<FreshRowCount>,
}

/// Verdicts of the last count of fresh rows.
#[derive(Debug, Default)]
struct FreshRowCount {
    /// Moment of the count; `None` before the first.
    counted_at: Option<Duration>,
    /// Verdict for every table, from the memory of all tables.
    all_tables: ThrottleVerdict,
    /// Verdicts from a table's own rows, for tables whose writers they delay.
    tables: HashMap<Oid, ThrottleVerdict>,
    log_state: LogState,
}

/// Hysteresis of the log messages about flushing that falls behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LogState {
    is_behind: bool,
    /// Moment since which no writer has been delayed.
    caught_up_since: Option<Duration>,
}

impl LogState {
    /// Records whether no writer is delayed at the moment `now`; returns whether flushing is behind if that changed.
    fn update(&mut self, is_free: bool, now: Duration) -> Option<bool> {
        if !is_free {
            self.caught_up_since = None;
            return (!std::mem::replace(&mut self.is_behind, true)).then_some(true);
        }
        let since = *self.caught_up_since.get_or_insert(now);
        let is_over = self.is_behind && CAUGHT_UP_AFTER <= now.saturating_sub(since);
        self.is_behind &= !is_over;
        is_over.then_some(false)
    }
}

impl FreshRowCount {
    /// Counts the fresh rows of all tables but those with row storage.
    fn from_state(state: &CatalogState, limits: FreshLimits) -> Self {
        let mut seen = Self::default();
        let mut bytes = 0;
        for table in state.tables().filter(|table| table.storage != Storage::Row) {
            let fresh = &state.rows(table.oid).fresh;
            bytes += fresh.memory_bytes();
            let pace = verdict_for(fresh.len() as u64, limits.rows);
            if pace != ThrottleVerdict::Proceed {
                seen.tables.insert(table.oid, pace);
            }
        }
        seen.all_tables = verdict_for(bytes, limits.bytes);
        seen
    }

    fn is_free(&self) -> bool {
        self.all_tables == ThrottleVerdict::Proceed && self.tables.is_empty()
    }
}

impl WriteThrottle {
    /// Creates a throttle that delays no writer before it has limits.
    #[must_use]
    pub fn new(transactions: Arc<Transactions>, clock: Arc<dyn Clock>) -> Self {
        Self { transactions, clock, limits: OnceLock::new(), last_count: Mutex::default() }
    }

    /// Returns whether writers were delayed within the last [`CAUGHT_UP_AFTER`].
    pub(crate) fn is_behind(&self) -> bool {
        self.last_count.lock().log_state.is_behind
    }

    /// Sets the limits from which on writers are delayed; only the first call has an effect.
    pub fn set_limits(&self, limits: FreshLimits) {
        // Set once, as there is one server.
        let _ = self.limits.set(limits);
    }

    /// Returns whether and how long a statement that writes to the table must wait at this moment.
    #[must_use]
    pub fn verdict(&self, table: &Table) -> ThrottleVerdict {
        let Some(limits) = self.limits.get().filter(|_| table.storage != Storage::Row) else {
            return ThrottleVerdict::Proceed;
        };
        let mut seen = self.last_count.lock();
        let now = self.clock.monotonic();
        // A delayed statement can afford a new count.
        if !seen.is_free() || seen.counted_at.is_none_or(|at| COUNT_INTERVAL <= now.saturating_sub(at)) {
            let told = seen.log_state;
            *seen = FreshRowCount {
                counted_at: Some(now),
                log_state: told,
                ..FreshRowCount::from_state(&self.transactions.current().state, *limits)
            };
            let is_free = seen.is_free();
            match seen.log_state.update(is_free, now) {
                Some(true) => tracing::warn!("flushing rows to Parquet falls behind: delaying writers"),
                Some(false) => tracing::info!("flushing rows to Parquet has caught up: writers are not delayed"),
                None => {}
            }
        }
        seen.all_tables.max(seen.tables.get(&table.oid).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_slowed_from_half_of_the_limit_on_and_stop_at_it() {
        let ms = |count| ThrottleVerdict::Delay(Duration::from_millis(count));
        assert_eq!(
            [0, 50, 51, 75, 99, 100, 101].map(|amount| verdict_for(amount, 100)),
            [
                ThrottleVerdict::Proceed,
                ThrottleVerdict::Proceed,
                ms(10),
                ms(250),
                ms(490),
                ThrottleVerdict::WaitForFlush,
                ThrottleVerdict::WaitForFlush
            ]
        );
        assert_eq!(verdict_for(u64::MAX - 1, u64::MAX), ThrottleVerdict::Delay(DELAY_MAX * 999 / 1_000));
        assert_eq!(verdict_for(0, 0), ThrottleVerdict::WaitForFlush);
    }

    #[test]
    fn what_comes_and_goes_is_told_once() {
        let (mut told, at) = (LogState::default(), Duration::from_secs);
        assert_eq!(told.update(true, at(0)), None);
        assert_eq!(told.update(false, at(1)), Some(true));
        assert_eq!([told.update(true, at(2)), told.update(false, at(50)), told.update(true, at(70))], [None; 3]);
        assert_eq!(told.update(true, at(129)), None);
        assert_eq!(told.update(true, at(130)), Some(false));
        assert_eq!(told.update(true, at(200)), None);
        assert_eq!(told.update(false, at(201)), Some(true));
    }

    #[test]
    fn the_slowest_pace_counts() {
        assert_eq!(
            ThrottleVerdict::Proceed.max(ThrottleVerdict::Delay(Duration::ZERO)),
            ThrottleVerdict::Delay(Duration::ZERO)
        );
        assert_eq!(ThrottleVerdict::WaitForFlush.max(ThrottleVerdict::Delay(DELAY_MAX)), ThrottleVerdict::WaitForFlush);
    }
}
