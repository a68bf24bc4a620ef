//! Groups of words that are near each other: a bit for each word there may be.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::NO_WORD;
use crate::{Result, STRETCH_ROWS, unless_stopped};

/// A word's bit says whether it is there; the set bits before it are its group.
#[derive(Debug)]
pub(super) struct Ranked {
    bits: Arc<Vec<u64>>,
    /// The set bits before each 64.
    ranks: Vec<u32>,
    groups: u32,
}

impl Ranked {
    /// The distinct words, all less than `size`, in their order.
    pub(super) fn new(words: &[u64], size: u64, stop: &AtomicBool) -> Result<Self> {
        let bits = bits(words, size, stop)?;
        let mut groups = 0;
        let mut ranks = Vec::with_capacity(bits.len());
        for word in &bits {
            ranks.push(groups);
            groups += word.count_ones();
        }
        Ok(Self { bits: Arc::new(bits), ranks, groups })
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> u32 {
        self.groups
    }

    /// The bits.
    pub(super) fn bits(&self) -> &Arc<Vec<u64>> {
        &self.bits
    }

    /// What they take in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bits.capacity() * 8 + self.ranks.capacity() * 4
    }

    /// A word's group.
    #[inline]
    pub(super) fn find(&self, word: u64) -> u32 {
        let (bits, ranks) = (&*self.bits, &*self.ranks);
        let at = (word / 64).min(bits.len() as u64 - 1) as usize;
        let (before, is_set) = ((1 << (word % 64)) - 1, bits[at] >> (word % 64) & 1);
        // All bits, which is NONE, where it is not set. No branch: whether words are there is often by chance.
        (ranks[at] + (bits[at] & before).count_ones()) | (is_set as u32).wrapping_sub(1)
    }
}

/// A bit for each word less than `size`, set for those that are there, and 64 more, not set.
pub(super) fn bits(words: &[u64], size: u64, stop: &AtomicBool) -> Result<Vec<u64>> {
    let mut bits = none(size);
    for words in words.chunks(STRETCH_ROWS) {
        unless_stopped(stop)?;
        words.iter().filter(|word| **word != NO_WORD).for_each(|word| set(&mut bits, *word));
    }
    Ok(bits)
}

/// As many bits as [`bits`], not set.
pub(super) fn none(size: u64) -> Vec<u64> {
    vec![0; size.div_ceil(64) as usize + 1]
}

/// Sets a word's bit.
#[inline]
pub(super) fn set(bits: &mut [u64], word: u64) {
    bits[(word / 64) as usize] |= 1 << (word % 64);
}

/// Whether a word's bit is set, of [`bits`].
#[inline]
pub(super) fn has(bits: &[u64], word: u64) -> bool {
    bits[(word / 64).min(bits.len() as u64 - 1) as usize] >> (word % 64) & 1 == 1
}
