//! How fast writers may go on while fresh rows wait to settle: as they like, slower the more rows wait, or not at all.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::{CatalogState, Storage, Table};
use parking_lot::Mutex;
use txn::Transactions;
use types::{Clock, Oid};

/// As long as nobody is slowed the fresh rows are counted so often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Settling has caught up once nobody was slowed for so long.
const QUIET: Duration = Duration::from_secs(60);
/// What a statement waits at most as long as there is any room.
const DELAY_MAX: Duration = Duration::from_millis(500);

/// How many fresh rows there may be before writers wait until some have settled; from half of it on they are slowed.
#[derive(Debug, Clone, Copy)]
pub struct FreshLimits {
    /// Of one table.
    pub rows: u64,
    /// Memory of all tables' together, but for those that keep their rows as rows.
    pub bytes: u64,
}

/// How a statement that writes may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Pace {
    #[default]
    Free,
    /// Once so much time has passed.
    After(Duration),
    /// When others have settled.
    Stop,
}

/// The pace where there is so much and may be no more than `limit`.
fn pace(amount: u64, limit: u64) -> Pace {
    let free = limit / 2;
    if limit <= amount {
        return Pace::Stop;
    }
    if amount <= free {
        return Pace::Free;
    }
    let thousandths = u128::from(amount - free) * 1_000 / u128::from(limit - free);
    Pace::After(DELAY_MAX * u32::try_from(thousandths).expect("less than the whole") / 1_000)
}

/// Slows writers where fresh rows come quicker than they settle. It looks at most so often, and knows the paces as they were then.
#[derive(Debug)]
pub struct WriteThrottle {
    transactions: Arc<Transactions>,
    clock: Arc<dyn Clock>,
    /// Without them all go on as they like.
    limits: OnceLock<FreshLimits>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    at: Option<Duration>,
    all: Pace,
    /// The tables whose own rows slow their writers.
    tables: HashMap<Oid, Pace>,
    told: Told,
}

/// What the log says of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Told {
    is_behind: bool,
    free_since: Option<Duration>,
}

impl Told {
    /// Whether settling falls behind, where that is news at the moment `now`.
    fn note(&mut self, is_free: bool, now: Duration) -> Option<bool> {
        if !is_free {
            self.free_since = None;
            return (!std::mem::replace(&mut self.is_behind, true)).then_some(true);
        }
        let since = *self.free_since.get_or_insert(now);
        let is_over = self.is_behind && QUIET <= now.saturating_sub(since);
        self.is_behind &= !is_over;
        is_over.then_some(false)
    }
}

impl Seen {
    fn of(state: &CatalogState, limits: FreshLimits) -> Self {
        let mut seen = Self::default();
        let mut bytes = 0;
        for table in state.tables().filter(|table| table.storage != Storage::Row) {
            let fresh = &state.rows(table.oid).fresh;
            bytes += fresh.memory_bytes();
            let pace = pace(fresh.len() as u64, limits.rows);
            if pace != Pace::Free {
                seen.tables.insert(table.oid, pace);
            }
        }
        seen.all = pace(bytes, limits.bytes);
        seen
    }

    fn is_free(&self) -> bool {
        self.all == Pace::Free && self.tables.is_empty()
    }
}

impl WriteThrottle {
    /// A throttle that slows nobody before it has limits.
    #[must_use]
    pub fn new(transactions: Arc<Transactions>, clock: Arc<dyn Clock>) -> Self {
        Self { transactions, clock, limits: OnceLock::new(), seen: Mutex::default() }
    }

    /// Whether writers were slowed lately.
    pub(crate) fn is_behind(&self) -> bool {
        self.seen.lock().told.is_behind
    }

    /// From now on writers wait where there are too many fresh rows. Once.
    pub fn limit(&self, limits: FreshLimits) {
        // The first stays: there is one server.
        let _ = self.limits.set(limits);
    }

    /// How statements that write to the table may go on at this moment.
    #[must_use]
    pub fn pace(&self, table: &Table) -> Pace {
        let Some(limits) = self.limits.get().filter(|_| table.storage != Storage::Row) else { return Pace::Free };
        let mut seen = self.seen.lock();
        let now = self.clock.monotonic();
        // Who is slowed anyway can look himself.
        if !seen.is_free() || seen.at.is_none_or(|at| LOOK_EVERY <= now.saturating_sub(at)) {
            let told = seen.told;
            *seen = Seen { at: Some(now), told, ..Seen::of(&self.transactions.current().state, *limits) };
            let is_free = seen.is_free();
            match seen.told.note(is_free, now) {
                Some(true) => tracing::warn!("settling falls behind: writers are slowed"),
                Some(false) => tracing::info!("settling has caught up: writers go on as they like"),
                None => {}
            }
        }
        seen.all.max(seen.tables.get(&table.oid).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_slowed_from_half_of_the_limit_on_and_stop_at_it() {
        let ms = |count| Pace::After(Duration::from_millis(count));
        assert_eq!(
            [0, 50, 51, 75, 99, 100, 101].map(|amount| pace(amount, 100)),
            [Pace::Free, Pace::Free, ms(10), ms(250), ms(490), Pace::Stop, Pace::Stop]
        );
        assert_eq!(pace(u64::MAX - 1, u64::MAX), Pace::After(DELAY_MAX * 999 / 1_000));
        assert_eq!(pace(0, 0), Pace::Stop);
    }

    #[test]
    fn what_comes_and_goes_is_told_once() {
        let (mut told, at) = (Told::default(), Duration::from_secs);
        assert_eq!(told.note(true, at(0)), None);
        assert_eq!(told.note(false, at(1)), Some(true));
        assert_eq!([told.note(true, at(2)), told.note(false, at(50)), told.note(true, at(70))], [None; 3]);
        assert_eq!(told.note(true, at(129)), None);
        assert_eq!(told.note(true, at(130)), Some(false));
        assert_eq!(told.note(true, at(200)), None);
        assert_eq!(told.note(false, at(201)), Some(true));
    }

    #[test]
    fn the_slowest_pace_counts() {
        assert_eq!(Pace::Free.max(Pace::After(Duration::ZERO)), Pace::After(Duration::ZERO));
        assert_eq!(Pace::Stop.max(Pace::After(DELAY_MAX)), Pace::Stop);
    }
}
