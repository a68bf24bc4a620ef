//! Groups of words that are far apart: a hash table with open addressing.

use std::sync::atomic::AtomicBool;

use super::NO_WORD;
use crate::{NONE, Result, STRETCH_ROWS, unless_stopped};

/// Words by their groups, and groups in slots by the words' hashes. What is looked up is small: most look-ups cost two lines of the
/// cache, and many are under way at the same time.
#[derive(Debug)]
pub(super) struct Slots {
    /// A group, and above it bits of its word's hash; [`NONE`] where free. Each is at its hash or after it. As many as a power of two,
    /// at most half of them used.
    slots: Vec<u32>,
    words: Vec<u64>,
    /// A hash's upper bits say where to begin.
    shift: u32,
    /// Bits of a group: never all set.
    group_bits: u32,
}

/// The most slots to begin with: a table of many rows may have few words.
const SLOTS_AT_FIRST: usize = 1 << 22;

/// So many words are put at once.
const AT_ONCE: usize = 64;

/// Spreads a word over all bits. Words are often as far apart as each other: one multiplication leaves such ones in clusters.
#[inline]
pub(super) fn hash(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Slots {
    /// The distinct words, numbered in the order they come; `there` of them are words.
    pub(super) fn new(words: &[u64], there: usize, stop: &AtomicBool) -> Result<Self> {
        Self::with_slots(words, there, stop, ((there + AT_ONCE) * 2).next_power_of_two().min(SLOTS_AT_FIRST))
    }

    /// Begins with so many slots, a power of two.
    pub(super) fn with_slots(words: &[u64], there: usize, stop: &AtomicBool, size: usize) -> Result<Self> {
        let mut slots = Self {
            slots: vec![NONE; size],
            words: Vec::new(),
            shift: 64 - size.trailing_zeros(),
            group_bits: usize::BITS - (there + 1).leading_zeros(),
        };
        for (chunk, words) in words.chunks(AT_ONCE).enumerate() {
            if chunk.is_multiple_of(STRETCH_ROWS / AT_ONCE) {
                unless_stopped(stop)?;
            }
            while (slots.words.len() + AT_ONCE) * 2 > slots.slots.len() {
                slots.grow();
            }
            // Brings the lines into the cache: these loads wait for none before them.
            let lines = words.iter().map(|word| slots.slots[(hash(*word) >> slots.shift) as usize]);
            std::hint::black_box(lines.fold(0, u32::wrapping_add));
            for word in words.iter().filter(|word| **word != NO_WORD) {
                slots.add(*word);
            }
        }
        Ok(slots)
    }

    /// How many groups there are.
    pub(super) fn groups(&self) -> u32 {
        self.words.len() as u32
    }

    /// What they take in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * 4 + self.words.capacity() * 8
    }

    /// Gives each of the found words, one for each row, its group. Looks at one slot of all rows, then at the next one of those that
    /// have found another word: without branches on what is loaded, so that the loads of later rows do not wait.
    #[inline]
    pub(super) fn find(&self, word: impl Fn(usize) -> u64, found: &mut [u32], open: &mut Vec<u32>) {
        let (slots, shift, end) = (&*self.slots, self.shift, self.slots.len() - 1);
        for (row, found) in found.iter_mut().enumerate() {
            *found = slots[(hash(word(row)) >> shift) as usize & end];
        }
        open.resize(found.len(), 0);
        let mut opened = 0;
        for (row, found) in found.iter_mut().enumerate() {
            let slot = *found;
            *found = self.group(slot, word(row));
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
                *found = self.group(slot, word(row as usize));
                open[still] = row;
                still += usize::from((*found == NONE) & (slot != NONE));
            }
            opened = still;
            step += 1;
        }
    }

    /// The group in a slot if it is the word's. In arithmetic, as a compiler makes branches of choices, and these are by chance.
    #[inline]
    fn group(&self, slot: u32, word: u64) -> u32 {
        let mask = self.group_mask();
        let is_like = u32::from(slot ^ self.tag(hash(word)) <= mask) & u32::from(slot != NONE);
        let group = slot & mask & is_like.wrapping_neg();
        let is_it = is_like & u32::from(self.words[group as usize] == word);
        // All bits, which is NONE, where it is another's.
        group | is_it.wrapping_sub(1)
    }

    /// The group of a word that is at a slot or after it, otherwise the free slot there.
    #[inline]
    fn find_from(&self, start: usize, word: u64, hash: u64) -> std::result::Result<u32, usize> {
        let (end, mask, tag) = (self.slots.len() - 1, self.group_mask(), self.tag(hash));
        let mut at = start & end;
        loop {
            let slot = self.slots[at];
            if slot == NONE {
                return Err(at);
            }
            if slot ^ tag <= mask && self.words[(slot & mask) as usize] == word {
                return Ok(slot & mask);
            }
            at = (at + 1) & end;
        }
    }

    fn add(&mut self, word: u64) {
        let hash = hash(word);
        if let Err(free) = self.find_from((hash >> self.shift) as usize, word, hash) {
            self.slots[free] = self.tag(hash) | self.groups();
            self.words.push(word);
        }
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        self.slots = vec![NONE; size];
        self.shift -= 1;
        for (group, word) in (0..).zip(&self.words) {
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

    /// A hash's lower bits, above a group's.
    #[inline]
    fn tag(&self, hash: u64) -> u32 {
        (hash << self.group_bits) as u32
    }
}
