//! Bitmap with rank support: an index for dense key codes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::NO_KEY_CODE;
use crate::{Result, STOP_CHECK_ROWS, check_stopped};

/// Index that stores one bit per possible key code; the number of set bits before a key code's bit is its group.
#[derive(Debug)]
pub(super) struct RankBitmap {
    bits: Arc<Vec<u64>>,
    /// Number of set bits before each word of 64 bits.
    ranks: Vec<u32>,
    groups: u32,
}

impl RankBitmap {
    /// Builds the index of key codes less than `size`; groups are in the order of their key codes.
    pub(super) fn new(words: &[u64], size: u64, stop: &AtomicBool) -> Result<Self> {
        let bits = build_bitmap(words, size, stop)?;
        let mut groups = 0;
        let mut ranks = Vec::with_capacity(bits.len());
        for word in &bits {
            ranks.push(groups);
            groups += word.count_ones();
        }
        Ok(Self { bits: Arc::new(bits), ranks, groups })
    }

    /// Returns the number of groups.
    pub(super) fn group_count(&self) -> u32 {
        self.groups
    }

    /// Returns the bitmap.
    pub(super) fn bits(&self) -> &Arc<Vec<u64>> {
        &self.bits
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bits.capacity() * 8 + self.ranks.capacity() * 4
    }

    /// Returns the group of a key code, or [`NO_KEY_CODE`].
    #[inline]
    pub(super) fn find(&self, word: u64) -> u32 {
        let (bits, ranks) = (&*self.bits, &*self.ranks);
        let at = (word / 64).min(bits.len() as u64 - 1) as usize;
        let (before, is_set) = ((1 << (word % 64)) - 1, bits[at] >> (word % 64) & 1);
        // All bits set is NO_KEY_CODE. Branchless, because hits and misses are often unpredictable.
        (ranks[at] + (bits[at] & before).count_ones()) | (is_set as u32).wrapping_sub(1)
    }
}

/// Builds a bitmap of the existing key codes less than `size`, with at least 64 unset bits after them.
pub(super) fn build_bitmap(words: &[u64], size: u64, stop: &AtomicBool) -> Result<Vec<u64>> {
    let mut bits = empty_bitmap(size);
    for words in words.chunks(STOP_CHECK_ROWS) {
        check_stopped(stop)?;
        words.iter().filter(|word| **word != NO_KEY_CODE).for_each(|word| set(&mut bits, *word));
    }
    Ok(bits)
}

/// Returns an empty bitmap of the size that [`build_bitmap`] uses.
pub(super) fn empty_bitmap(size: u64) -> Vec<u64> {
    vec![0; size.div_ceil(64) as usize + 1]
}

/// Sets the bit of a key code.
#[inline]
pub(super) fn set(bits: &mut [u64], word: u64) {
    bits[(word / 64) as usize] |= 1 << (word % 64);
}

/// Returns whether the bit of a key code is set in a bitmap built by [`build_bitmap`] or [`empty_bitmap`]; false for
/// larger key codes.
#[inline]
pub(super) fn contains(bits: &[u64], word: u64) -> bool {
    bits[(word / 64).min(bits.len() as u64 - 1) as usize] >> (word % 64) & 1 == 1
}
