//! Which build rows have found a match, set by several workers at once.

use std::sync::atomic::{AtomicU64, Ordering};

/// A bit for each build row. Relaxed: they are read for good only after all workers are done.
#[derive(Debug)]
pub(super) struct Marks {
    words: Vec<AtomicU64>,
}

impl Marks {
    /// None set.
    pub(super) fn new(rows: usize) -> Self {
        Self { words: std::iter::repeat_with(AtomicU64::default).take(rows.div_ceil(64)).collect() }
    }

    /// Whether a row's bit is set.
    #[inline]
    pub(super) fn get(&self, row: u32) -> bool {
        self.word(row as usize / 64) >> (row % 64) & 1 == 1
    }

    /// Sets a row's bit. A word is written only where that changes it: workers that find the same rows would fight for it.
    #[inline]
    pub(super) fn set(&self, row: u32) {
        let bit = 1 << (row % 64);
        let word = &self.words[row as usize / 64];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// 64 rows' bits.
    #[inline]
    pub(super) fn word(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    /// How many words there are.
    pub(super) fn words(&self) -> usize {
        self.words.len()
    }
}
