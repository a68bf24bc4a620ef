//! Index from key codes to groups of build rows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::NO_KEY_CODE;
use super::hash_index::HashIndex;
use super::rank_bitmap::{self, RankBitmap};
use crate::{NONE, Result, STOP_CHECK_ROWS, check_stopped};

/// Exclusive upper bounds of key codes up to this always use an array.
const ALWAYS_ARRAY_SIZE: u64 = 1 << 14;

/// Maximum ratio of possible to existing key codes for an array.
const ARRAY_RATIO_MAX: u64 = 2;

/// Maximum ratio of possible to existing key codes for a bitmap. A bitmap can be larger than a hash table, but
/// neighbouring keys share cache lines, and neighbouring rows often have neighbouring keys.
const BITMAP_RATIO_MAX: u64 = 256;

/// Maximum number of bits of a bitmap.
const BITMAP_BITS_MAX: u64 = 1 << 27;

/// Index that numbers the distinct key codes of the build side; the numbers are the groups.
#[derive(Debug)]
pub(super) enum KeyIndex {
    /// Array with the group of each possible key code; its last entry is [`NONE`] and serves all larger key codes.
    Array { group_by_code: Vec<u32>, groups: u32 },
    /// Bitmap of the existing key codes; the rank of a bit is its group.
    RankBitmap(RankBitmap),
    /// Hash table.
    Hash(HashIndex),
    /// Bitmap of the existing key codes, for joins that only need to know whether a match exists.
    ExistenceBitmap(Arc<Vec<u64>>),
}

impl KeyIndex {
    /// Chooses and builds the index for key codes less than `size`.
    pub(super) fn new(key_codes: &[u64], size: u64, asks_existence: bool, stop: &AtomicBool) -> Result<Self> {
        let there = key_codes.iter().filter(|word| **word != NO_KEY_CODE).count() as u64;
        let size = if there == 0 { 0 } else { size };
        let has_array = size <= ALWAYS_ARRAY_SIZE || (size <= there * ARRAY_RATIO_MAX && size <= BITMAP_BITS_MAX);
        let has_bits = has_array || (size <= there * BITMAP_RATIO_MAX && size <= BITMAP_BITS_MAX);
        Ok(if asks_existence && has_bits {
            Self::ExistenceBitmap(Arc::new(rank_bitmap::build_bitmap(key_codes, size, stop)?))
        } else if has_array {
            Self::new_array(key_codes, size, stop)?
        } else if has_bits {
            Self::RankBitmap(RankBitmap::new(key_codes, size, stop)?)
        } else {
            Self::Hash(HashIndex::new(key_codes, there as usize, stop)?)
        })
    }

    /// Builds an array.
    fn new_array(key_codes: &[u64], size: u64, stop: &AtomicBool) -> Result<Self> {
        let mut group_by_code = vec![NONE; size as usize + 1];
        let mut groups = 0;
        for key_codes in key_codes.chunks(STOP_CHECK_ROWS) {
            check_stopped(stop)?;
            for word in key_codes.iter().filter(|word| **word != NO_KEY_CODE) {
                let group = &mut group_by_code[*word as usize];
                if *group == NONE {
                    *group = groups;
                    groups += 1;
                }
            }
        }
        Ok(Self::Array { group_by_code, groups })
    }

    /// Returns the number of groups; 1 if only the existence of matches is known.
    pub(super) fn group_count(&self) -> u32 {
        match self {
            Self::Array { groups, .. } => *groups,
            Self::RankBitmap(ranked) => ranked.group_count(),
            Self::Hash(slots) => slots.group_count(),
            Self::ExistenceBitmap(_) => 1,
        }
    }

    /// Returns whether groups are numbered in the order in which their key codes first appear.
    pub(super) fn numbers_by_first_appearance(&self) -> bool {
        matches!(self, Self::Array { .. } | Self::Hash(_))
    }

    /// Returns the bitmap of existing key codes, if the index has one.
    pub(super) fn bits(&self) -> Option<&Arc<Vec<u64>>> {
        match self {
            Self::RankBitmap(ranked) => Some(ranked.bits()),
            Self::ExistenceBitmap(bits) => Some(bits),
            Self::Array { .. } | Self::Hash(_) => None,
        }
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Array { group_by_code, .. } => group_by_code.capacity() * 4,
            Self::RankBitmap(ranked) => ranked.memory_bytes(),
            Self::Hash(slots) => slots.memory_bytes(),
            Self::ExistenceBitmap(bits) => bits.capacity() * 8,
        }
    }

    /// Looks up the group of each row's key code, [`NONE`] if no build row has it. `open` is a buffer.
    #[inline]
    pub(super) fn find(&self, rows: usize, word: impl Fn(usize) -> u64, found: &mut Vec<u32>, open: &mut Vec<u32>) {
        found.resize(rows, NONE);
        let each = found.iter_mut().enumerate();
        match self {
            Self::Array { group_by_code, .. } => {
                let group_by_code = group_by_code.as_slice();
                let beyond = group_by_code.len() as u64 - 1;
                each.for_each(|(row, found)| *found = group_by_code[word(row).min(beyond) as usize]);
            }
            Self::RankBitmap(ranked) => each.for_each(|(row, found)| *found = ranked.find(word(row))),
            Self::ExistenceBitmap(bits) => {
                each.for_each(|(row, found)| *found = if rank_bitmap::contains(bits, word(row)) { 0 } else { NONE });
            }
            Self::Hash(slots) => slots.find_groups(word, found, open),
        }
    }
}
