//! The newest states, kept in memory: they share what they have in common, so each costs what its commit changed.

use std::collections::VecDeque;
use std::sync::Arc;

use catalog::CatalogState;
use parking_lot::Mutex;
use types::{CommitTs, Moment};

/// So many of the newest are all there.
const ALL: usize = 32;
/// Of older ones, one in such a time.
const SPACING_US: i64 = 1_000_000;
/// And none that was left longer ago: rows that have been settled since would stay in memory with it.
const KEEP_US: i64 = 30_000_000;

/// A state, and when it was the newest.
#[derive(Debug, Clone)]
pub struct Known {
    /// The commit that made it.
    pub ts: CommitTs,
    pub state: Arc<CatalogState>,
    /// The moments at which it was the newest: from the first time, before the second.
    pub from_us: i64,
    pub until_us: i64,
    /// The commit that followed.
    pub next: CommitTs,
}

impl Known {
    /// Whether it was the newest at the moment.
    #[must_use]
    pub fn is_at(&self, moment: Moment) -> bool {
        match moment {
            Moment::Newest => false,
            Moment::Time(us) => self.from_us <= us && us < self.until_us,
            Moment::Commit(commit) => self.ts <= commit && commit < self.next,
        }
    }
}

/// States from the last moments, oldest first.
#[derive(Debug)]
pub struct Recent {
    states: Mutex<VecDeque<Known>>,
}

impl Recent {
    /// The state at the start, since when it is known.
    #[must_use]
    pub fn new(ts: CommitTs, state: Arc<CatalogState>, from_us: i64) -> Self {
        let first = Known { ts, state, from_us, until_us: i64::MAX, next: CommitTs(u64::MAX) };
        Self { states: Mutex::new(VecDeque::from([first])) }
    }

    /// Another state is the newest.
    pub fn add(&self, ts: CommitTs, state: Arc<CatalogState>, now_us: i64) {
        let mut states = self.states.lock();
        if let Some(last) = states.back_mut() {
            (last.until_us, last.next) = (now_us, ts);
        }
        states.push_back(Known { ts, state, from_us: now_us, until_us: i64::MAX, next: CommitTs(u64::MAX) });
        if let Some(leaving) = states.len().checked_sub(ALL + 1).filter(|leaving| 0 < *leaving)
            && states[leaving].from_us - states[leaving - 1].from_us < SPACING_US
        {
            states.remove(leaving);
        }
        while states.front().is_some_and(|oldest| oldest.until_us < now_us - KEEP_US) {
            states.pop_front();
        }
    }

    /// Keeps the newest alone.
    pub fn forget(&self) {
        let mut states = self.states.lock();
        let older = states.len().saturating_sub(1);
        states.drain(..older);
    }

    /// The state at the moment, if it is among those kept.
    #[must_use]
    pub fn find(&self, moment: Moment) -> Option<Known> {
        self.states.lock().iter().rev().find(|known| known.is_at(moment)).cloned()
    }
}
