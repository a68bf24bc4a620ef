//! Open-addressing hash table from sparse key codes to groups.

use std::sync::atomic::AtomicBool;

use super::NO_KEY_CODE;
use crate::{NONE, Result, STOP_CHECK_ROWS, check_stopped};

/// Hash table from key codes to groups. Slots are small (4 bytes): most lookups touch two cache lines, and the
/// lookups of a batch overlap their cache misses.
#[derive(Debug)]
pub(super) struct HashIndex {
    /// Slots: a group number with bits of its key code's hash above it, or [`NONE`] if free. A group is in the slot
    /// of its hash or in one after it (linear probing). Their number is a power of two, and at most half of them are
    /// used.
    slots: Vec<u32>,
    /// Key codes by group.
    key_codes: Vec<u64>,
    /// Right shift that maps a hash to its first slot.
    shift: u32,
    /// Bits of a slot that hold the group number; never all of them set in a used slot.
    group_bits: u32,
}

/// Maximum initial number of slots: a build side of many rows may have few distinct keys.
const INITIAL_SLOTS_MAX: usize = 1 << 22;

/// Key codes inserted between two checks of the fill factor.
const INSERT_CHUNK: usize = 64;

/// Spreads a key code over all bits (the finalizer of SplitMix64). Key codes are often equidistant, which a single
/// multiplication would leave clustered.
#[inline]
pub(super) fn hash(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl HashIndex {
    /// Numbers the distinct key codes in order of appearance; `there` of `key_codes` differ from [`NO_KEY_CODE`].
    pub(super) fn new(key_codes: &[u64], key_count: usize, stop: &AtomicBool) -> Result<Self> {
        Self::with_slots(
            key_codes,
            key_count,
            stop,
            ((key_count + INSERT_CHUNK) * 2).next_power_of_two().min(INITIAL_SLOTS_MAX),
        )
    }

    /// Works like [`HashIndex::new`] with an initial number of slots, a power of two.
    pub(super) fn with_slots(key_codes: &[u64], there: usize, stop: &AtomicBool, size: usize) -> Result<Self> {
        let mut slots = Self {
            slots: vec![NONE; size],
            key_codes: Vec::new(),
            shift: 64 - size.trailing_zeros(),
            group_bits: usize::BITS - (there + 1).leading_zeros(),
        };
        for (chunk, key_codes) in key_codes.chunks(INSERT_CHUNK).enumerate() {
            if chunk.is_multiple_of(STOP_CHECK_ROWS / INSERT_CHUNK) {
                check_stopped(stop)?;
            }
            while (slots.key_codes.len() + INSERT_CHUNK) * 2 > slots.slots.len() {
                slots.grow();
            }
            // Prefetches the slots: these loads do not depend on each other.
            let lines = key_codes.iter().map(|word| slots.slots[(hash(*word) >> slots.shift) as usize]);
            std::hint::black_box(lines.fold(0, u32::wrapping_add));
            for word in key_codes.iter().filter(|word| **word != NO_KEY_CODE) {
                slots.insert(*word);
            }
        }
        Ok(slots)
    }

    /// Returns the number of groups.
    pub(super) fn group_count(&self) -> u32 {
        self.key_codes.len() as u32
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * 4 + self.key_codes.capacity() * 8
    }

    /// Looks up the group of each row's key code. Reads the first slot of all rows, then the next slot of the rows
    /// that met another key code. There are no branches on loaded data, so that the loads of later rows do not wait
    /// for it.
    #[inline]
    pub(super) fn find_groups(&self, word: impl Fn(usize) -> u64, found: &mut [u32], open: &mut Vec<u32>) {
        let (slots, shift, end) = (&*self.slots, self.shift, self.slots.len() - 1);
        for (row, found) in found.iter_mut().enumerate() {
            *found = slots[(hash(word(row)) >> shift) as usize & end];
        }
        open.resize(found.len(), 0);
        let mut opened = 0;
        for (row, found) in found.iter_mut().enumerate() {
            let slot = *found;
            *found = self.match_slot(slot, word(row));
            open[opened] = row as u32;
            opened += usize::from((*found == NONE) & (slot != NONE));
        }
        let mut step = 1;
        while opened > 0 {
            for row in &open[..opened] {
                let row = *row as usize;
                found[row] = slots[((hash(word(row)) >> shift) as usize + step) & end];
            }
            let mut still = 0;
            for index in 0..opened {
                let row = open[index];
                let found = &mut found[row as usize];
                let slot = *found;
                *found = self.match_slot(slot, word(row as usize));
                open[still] = row;
                still += usize::from((*found == NONE) & (slot != NONE));
            }
            opened = still;
            step += 1;
        }
    }

    /// Returns the group in a slot if it belongs to the key code, otherwise [`NONE`]. Pure arithmetic, because
    /// branches on random data would be mispredicted.
    #[inline]
    fn match_slot(&self, slot: u32, word: u64) -> u32 {
        let mask = self.group_mask();
        let is_like = u32::from(slot ^ self.tag(hash(word)) <= mask) & u32::from(slot != NONE);
        let group = slot & mask & is_like.wrapping_neg();
        let is_it = is_like & u32::from(self.key_codes[group as usize] == word);
        // All bits set is NONE.
        group | is_it.wrapping_sub(1)
    }

    /// Returns the group of a key code found at a slot or after it, otherwise the free slot where it belongs.
    #[inline]
    fn probe_from(&self, start: usize, word: u64, hash: u64) -> std::result::Result<u32, usize> {
        let (end, mask, tag) = (self.slots.len() - 1, self.group_mask(), self.tag(hash));
        let mut at = start & end;
        loop {
            let slot = self.slots[at];
            if slot == NONE {
                return Err(at);
            }
            if slot ^ tag <= mask && self.key_codes[(slot & mask) as usize] == word {
                return Ok(slot & mask);
            }
            at = (at + 1) & end;
        }
    }

    fn insert(&mut self, word: u64) {
        let hash = hash(word);
        if let Err(free) = self.probe_from((hash >> self.shift) as usize, word, hash) {
            self.slots[free] = self.tag(hash) | self.group_count();
            self.key_codes.push(word);
        }
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        self.slots = vec![NONE; size];
        self.shift -= 1;
        for (group, word) in (0..).zip(&self.key_codes) {
            let hash = hash(*word);
            let mut at = (hash >> self.shift) as usize;
            while self.slots[at] != NONE {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = self.tag(hash) | group;
        }
    }

    #[inline]
    fn group_mask(&self) -> u32 {
        u32::MAX >> (32 - self.group_bits)
    }

    /// Returns the lower bits of a hash, shifted above the group number.
    #[inline]
    fn tag(&self, hash: u64) -> u32 {
        (hash << self.group_bits) as u32
    }
}
