//! Recent states, in memory for time travel. States share what is unchanged between them, so each costs only what its
//! commit changed.

use std::collections::VecDeque;
use std::sync::Arc;

use catalog::CatalogState;
use parking_lot::Mutex;
use types::{CommitTs, TimeTravelTarget};

/// Number of newest states that are all retained.
const NEWEST_STATES_RETAINED: usize = 32;
/// Minimum spacing of the older ones that are retained.
const OLDER_STATES_SPACING_US: i64 = 1_000_000;
/// Age limit: older states would keep rows in memory that were flushed to Parquet since.
const STATE_AGE_MAX_US: i64 = 30_000_000;

/// State of the catalog with the period in which it was the newest.
#[derive(Debug, Clone)]
pub struct HistoricalState {
    /// The commit that created the state.
    pub ts: CommitTs,
    pub state: Arc<CatalogState>,
    /// The period in microseconds since 1970: from `from_us` inclusive to `until_us` exclusive.
    pub from_us: i64,
    pub until_us: i64,
    /// The commit that replaced the state.
    pub replaced_by: CommitTs,
}

impl HistoricalState {
    /// Returns whether the state was the newest at `moment`.
    #[must_use]
    pub fn covers(&self, moment: TimeTravelTarget) -> bool {
        match moment {
            TimeTravelTarget::Newest => false,
            TimeTravelTarget::Time(us) => self.from_us <= us && us < self.until_us,
            TimeTravelTarget::Commit(commit) => self.ts <= commit && commit < self.replaced_by,
        }
    }
}

/// Recent states, oldest first.
#[derive(Debug)]
pub struct RecentStates {
    states: Mutex<VecDeque<HistoricalState>>,
}

impl RecentStates {
    /// Starts with the state at the server's start, the newest since `from_us`.
    #[must_use]
    pub fn new(ts: CommitTs, state: Arc<CatalogState>, from_us: i64) -> Self {
        let first = HistoricalState { ts, state, from_us, until_us: i64::MAX, replaced_by: CommitTs(u64::MAX) };
        Self { states: Mutex::new(VecDeque::from([first])) }
    }

    /// Adds a new newest state.
    pub fn add(&self, ts: CommitTs, state: Arc<CatalogState>, now_us: i64) {
        let mut states = self.states.lock();
        if let Some(last) = states.back_mut() {
            (last.until_us, last.replaced_by) = (now_us, ts);
        }
        states.push_back(HistoricalState {
            ts,
            state,
            from_us: now_us,
            until_us: i64::MAX,
            replaced_by: CommitTs(u64::MAX),
        });
        if let Some(candidate) = states.len().checked_sub(NEWEST_STATES_RETAINED + 1).filter(|leaving| 0 < *leaving)
            && states[candidate].from_us - states[candidate - 1].from_us < OLDER_STATES_SPACING_US
        {
            states.remove(candidate);
        }
        while states.front().is_some_and(|oldest| oldest.until_us < now_us - STATE_AGE_MAX_US) {
            states.pop_front();
        }
    }

    /// Drops all states but the newest.
    pub fn drop_older(&self) {
        let mut states = self.states.lock();
        let older = states.len().saturating_sub(1);
        states.drain(..older);
    }

    /// Returns the state as of `moment` if it is retained.
    #[must_use]
    pub fn find(&self, moment: TimeTravelTarget) -> Option<HistoricalState> {
        self.states.lock().iter().rev().find(|known| known.covers(moment)).cloned()
    }
}
