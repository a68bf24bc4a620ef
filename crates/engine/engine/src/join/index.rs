//! From a key's word to its group of build rows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::NO_WORD;
use super::ranked::{self, Ranked};
use super::slots::Slots;
use crate::{NONE, Result, STRETCH_ROWS, unless_stopped};

/// Fewer words than this that there may be have an array, however few there are.
const SMALL: u64 = 1 << 14;

/// Up to so many times as many words as there are have an array.
const ARRAY_SHARE: u64 = 2;

/// Up to so many times as many words as there are have bits: what these take beyond a hash table's room they save by what is near in
/// them being near in memory, as keys of neighbouring rows often are.
const BITS_SHARE: u64 = 256;

/// The most words that may have bits.
const BITS: u64 = 1 << 27;

/// Numbers the distinct words of the build side.
#[derive(Debug)]
pub(super) enum Index {
    /// The group of each word that there may be, and [`NONE`] for those beyond.
    Direct {
        groups_of: Vec<u32>,
        groups: u32,
    },
    Ranked(Ranked),
    Slots(Slots),
    /// Where it is enough whether a word is there.
    Bits(Arc<Vec<u64>>),
}

impl Index {
    /// Of words less than `size`.
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

    /// How many groups there are; one, where it is only known which words are there.
    pub(super) fn groups(&self) -> u32 {
        match self {
            Self::Direct { groups, .. } => *groups,
            Self::Ranked(ranked) => ranked.groups(),
            Self::Slots(slots) => slots.groups(),
            Self::Bits(_) => 1,
        }
    }

    /// Whether groups are numbered in the order that words come.
    pub(super) fn is_by_appearance(&self) -> bool {
        matches!(self, Self::Direct { .. } | Self::Slots(_))
    }

    /// The bits of the words that are there, where there are any.
    pub(super) fn bits(&self) -> Option<&Arc<Vec<u64>>> {
        match self {
            Self::Ranked(ranked) => Some(ranked.bits()),
            Self::Bits(bits) => Some(bits),
            Self::Direct { .. } | Self::Slots(_) => None,
        }
    }

    /// What it takes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Direct { groups_of, .. } => groups_of.capacity() * 4,
            Self::Ranked(ranked) => ranked.memory_bytes(),
            Self::Slots(slots) => slots.memory_bytes(),
            Self::Bits(bits) => bits.capacity() * 8,
        }
    }

    /// The groups of rows' words, [`NONE`] where a word is not there.
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
