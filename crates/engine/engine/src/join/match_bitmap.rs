//! Bitmap of matched rows that several workers set concurrently.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bitmap with one bit per row. Relaxed ordering is enough, because the bits are evaluated only after all workers
/// have finished.
#[derive(Debug)]
pub(super) struct MatchBitmap {
    words: Vec<AtomicU64>,
}

impl MatchBitmap {
    /// Creates a bitmap without set bits.
    pub(super) fn new(rows: usize) -> Self {
        Self { words: std::iter::repeat_with(AtomicU64::default).take(rows.div_ceil(64)).collect() }
    }

    /// Returns whether the bit of a row is set.
    #[inline]
    pub(super) fn get(&self, row: u32) -> bool {
        self.word(row as usize / 64) >> (row % 64) & 1 == 1
    }

    /// Sets the bit of a row. The word is written only if this changes it, to avoid contention between workers that
    /// match the same rows.
    #[inline]
    pub(super) fn set(&self, row: u32) {
        let bit = 1 << (row % 64);
        let word = &self.words[row as usize / 64];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Returns the bits of 64 rows.
    #[inline]
    pub(super) fn word(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    /// Returns the number of words.
    pub(super) fn word_count(&self) -> usize {
        self.words.len()
    }
}
