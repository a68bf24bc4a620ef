//! Index from key codes to groups of build rows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::NO_WORD;
use super::ranked::{self, Ranked};
use super::slots::Slots;
use crate::{NONE, Result, STRETCH_ROWS, unless_stopped};

/// Exclusive upper bounds of key codes up to this always use an array.
const SMALL: u64 = 1 << 14;

/// Maximum ratio of possible to existing key codes for an array.
const ARRAY_SHARE: u64 = 2;

/// Maximum ratio of possible to existing key codes for a bitmap. A bitmap can be larger than a hash table, but
/// neighbouring keys share cache lines, and neighbouring rows often have neighbouring keys.
const BITS_SHARE: u64 = 256;

/// Maximum number of bits of a bitmap.
const BITS: u64 = 1 << 27;

/// Index that numbers the distinct key codes of the build side; the numbers are the groups.
#[derive(Debug)]
pub(super) enum Index {
    /// Array with the group of each possible key code; its last entry is [`NONE`] and serves all larger key codes.
    Direct { groups_of: Vec<u32>, groups: u32 },
    /// Bitmap of the existing key codes; the rank of a bit is its group.
    Ranked(Ranked),
    /// Hash table.
    Slots(Slots),
    /// Bitmap of the existing key codes, for joins that only need to know whether a match exists.
    Bits(Arc<Vec<u64>>),
}

impl Index {
    /// Chooses and builds the index for key codes less than `size`.
    pub(super) fn new(words: &[u64], size: u64, asks_existence: bool, stop: &AtomicBool) -> Result<Self> {
        let there = words.iter().filter(|word| **word != NO_WORD).count() as u64;
        let size = if there == 0 { 0 } else { size };
        let has_array = size <= SMALL || (size <= there * ARRAY_SHARE && size <= BITS);
        let has_bits = has_array || (size <= there * BITS_SHARE && size <= BITS);
        Ok(if asks_existence && has_bits {
            Self::Bits(Arc::new(ranked::bits(words, size, stop)?))
        } else if has_array {
            Self::direct(words, size, stop)?
        } else if has_bits {
            Self::Ranked(Ranked::new(words, size, stop)?)
        } else {
            Self::Slots(Slots::new(words, there as usize, stop)?)
        })
    }

    /// Builds an array.
    fn direct(words: &[u64], size: u64, stop: &AtomicBool) -> Result<Self> {
        let mut groups_of = vec![NONE; size as usize + 1];
        let mut groups = 0;
        for words in words.chunks(STRETCH_ROWS) {
            unless_stopped(stop)?;
            for word in words.iter().filter(|word| **word != NO_WORD) {
                let group = &mut groups_of[*word as usize];
                if *group == NONE {
                    *group = groups;
                    groups += 1;
                }
            }
        }
        Ok(Self::Direct { groups_of, groups })
    }

    /// Returns the number of groups; 1 if only the existence of matches is known.
    pub(super) fn groups(&self) -> u32 {
        match self {
            Self::Direct { groups, .. } => *groups,
            Self::Ranked(ranked) => ranked.groups(),
            Self::Slots(slots) => slots.groups(),
            Self::Bits(_) => 1,
        }
    }

    /// Returns whether groups are numbered in the order in which their key codes first appear.
    pub(super) fn is_by_appearance(&self) -> bool {
        matches!(self, Self::Direct { .. } | Self::Slots(_))
    }

    /// Returns the bitmap of existing key codes, if the index has one.
    pub(super) fn bits(&self) -> Option<&Arc<Vec<u64>>> {
        match self {
            Self::Ranked(ranked) => Some(ranked.bits()),
            Self::Bits(bits) => Some(bits),
            Self::Direct { .. } | Self::Slots(_) => None,
        }
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Direct { groups_of, .. } => groups_of.capacity() * 4,
            Self::Ranked(ranked) => ranked.memory_bytes(),
            Self::Slots(slots) => slots.memory_bytes(),
            Self::Bits(bits) => bits.capacity() * 8,
        }
    }

    /// Looks up the group of each row's key code, [`NONE`] if no build row has it. `open` is a buffer.
    #[inline]
    pub(super) fn find(&self, rows: usize, word: impl Fn(usize) -> u64, found: &mut Vec<u32>, open: &mut Vec<u32>) {
        found.resize(rows, NONE);
        let each = found.iter_mut().enumerate();
        match self {
            Self::Direct { groups_of, .. } => {
                let groups_of = groups_of.as_slice();
                let beyond = groups_of.len() as u64 - 1;
                each.for_each(|(row, found)| *found = groups_of[word(row).min(beyond) as usize]);
            }
            Self::Ranked(ranked) => each.for_each(|(row, found)| *found = ranked.find(word(row))),
            Self::Bits(bits) => {
                each.for_each(|(row, found)| *found = if ranked::has(bits, word(row)) { 0 } else { NONE });
            }
            Self::Slots(slots) => slots.find(word, found, open),
        }
    }
}
