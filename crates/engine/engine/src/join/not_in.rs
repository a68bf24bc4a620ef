//! State of null-aware anti joins (NOT IN). A NULL among the probe keys makes the condition unknown for every build
//! row, and a build row with a NULL key is returned only if there are no probe rows.

use std::sync::atomic::{AtomicBool, Ordering};

use super::NO_KEY_CODE;
use crate::{Bitmap, Column};

/// Facts about the probe side, collected by all workers. Relaxed ordering is enough, because they are evaluated for
/// the result only after all workers have finished.
#[derive(Debug)]
pub(super) struct NotInState {
    /// Build rows whose key is NULL.
    null_keys: Bitmap,
    /// Whether the probe side has any row.
    has_rows: AtomicBool,
    /// Whether the probe side has a NULL key.
    has_null: AtomicBool,
}

impl NotInState {
    /// Creates the state for build rows with these key codes, which have been reordered by `order`.
    pub(super) fn new(words: &[u64], order: Option<&[u32]>) -> Self {
        let place = |row: usize| order.map_or(row, |order| order[row] as usize);
        let null_keys = Bitmap::from_fn(words.len(), |row| words[place(row)] == NO_KEY_CODE);
        Self { null_keys, has_rows: AtomicBool::new(false), has_null: AtomicBool::new(false) }
    }

    /// Records that the probe side has rows. Written only if this changes the flag, to avoid contention between
    /// workers.
    pub(super) fn record_rows(&self) {
        if !self.has_rows.load(Ordering::Relaxed) {
            self.has_rows.store(true, Ordering::Relaxed);
        }
    }

    /// Records the keys of a non-empty probe batch.
    pub(super) fn record_keys(&self, keys: &Column) {
        self.record_rows();
        if keys.has_null() {
            self.has_null.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether the result is empty, whatever other probe rows follow.
    pub(super) fn is_result_empty(&self) -> bool {
        self.has_null.load(Ordering::Relaxed)
    }

    /// Returns the rows among 64 build rows that are not returned although they have no match.
    pub(super) fn unknown_rows(&self, word: usize) -> u64 {
        if self.has_rows.load(Ordering::Relaxed) { self.null_keys.words()[word] } else { 0 }
    }
}
