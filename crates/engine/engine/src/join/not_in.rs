//! NOT IN: a NULL among the probe rows' keys leaves it open for every build row whether its key is one of them, and a build row whose key is
//! NULL is only given where there are no probe rows at all.

use std::sync::atomic::{AtomicBool, Ordering};

use super::NO_WORD;
use crate::{Bits, Column};

/// What has been seen of the probe side, by all workers. Relaxed: it is read for good only after all of them are done.
#[derive(Debug)]
pub(super) struct NotIn {
    /// The build rows whose key is NULL.
    null_keys: Bits,
    has_rows: AtomicBool,
    has_null: AtomicBool,
}

impl NotIn {
    /// Of the build rows with these words, which have been brought into an order.
    pub(super) fn new(words: &[u64], order: Option<&[u32]>) -> Self {
        let place = |row: usize| order.map_or(row, |order| order[row] as usize);
        let null_keys = Bits::of(words.len(), |row| words[place(row)] == NO_WORD);
        Self { null_keys, has_rows: AtomicBool::new(false), has_null: AtomicBool::new(false) }
    }

    /// Says that there are probe rows. Written only where that changes it: workers would fight for it.
    pub(super) fn see_rows(&self) {
        if !self.has_rows.load(Ordering::Relaxed) {
            self.has_rows.store(true, Ordering::Relaxed);
        }
    }

    /// Says that there are probe rows with these keys, at least one.
    pub(super) fn see(&self, keys: &Column) {
        self.see_rows();
        if keys.has_null() {
            self.has_null.store(true, Ordering::Relaxed);
        }
    }

    /// Whether no build row is given, whatever else comes.
    pub(super) fn gives_nothing(&self) -> bool {
        self.has_null.load(Ordering::Relaxed)
    }

    /// Of 64 build rows, those that are not given though they have no match.
    pub(super) fn open(&self, word: usize) -> u64 {
        if self.has_rows.load(Ordering::Relaxed) { self.null_keys.words()[word] } else { 0 }
    }
}
