//! Numbers for strings.

use xxhash_rust::xxh3::xxh3_64;

use super::NONE;
use crate::{Error, Result};

/// Numbers distinct strings from 0 in the order they come.
#[derive(Debug, Default)]
pub(super) struct TextNumbers {
    /// A number and the upper half of its string's hash; as many as a power of two, at most half of them used.
    slots: Vec<Slot>,
    bytes: Vec<u8>,
    /// Where each string ends, and its hash.
    ends: Vec<(usize, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    tag: u32,
    number: u32,
}

const FREE: Slot = Slot { tag: 0, number: NONE };

impl TextNumbers {
    /// How many strings have numbers.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string of a number.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before].0);
        &self.bytes[start..self.ends[number].0]
    }

    /// A string's number, a new one where it has none.
    pub(super) fn number(&mut self, text: &[u8]) -> Result<u32> {
        if self.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = xxh3_64(text);
        let slot = self.slot(text, hash);
        if self.slots[slot].number != NONE {
            return Ok(self.slots[slot].number);
        }
        let number = u32::try_from(self.len()).ok().filter(|number| *number < NONE - 1);
        let number = number.ok_or(Error::Memory("distinct texts of a join"))?;
        self.bytes.extend_from_slice(text);
        self.ends.push((self.bytes.len(), hash));
        self.slots[slot] = Slot { tag: tag(hash), number };
        Ok(number)
    }

    /// A string's number, [`NONE`] where it has none.
    #[inline]
    pub(super) fn find(&self, text: &[u8]) -> u32 {
        if self.slots.is_empty() {
            return NONE;
        }
        self.slots[self.slot(text, xxh3_64(text))].number
    }

    /// What it takes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.bytes.capacity() + self.ends.capacity() * 16
    }

    /// The slot that has the string, or the free one where it would be.
    #[inline]
    fn slot(&self, text: &[u8], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.number == NONE || (slot.tag == tag(hash) && self.get(slot.number as usize) == text) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(size, FREE);
        for (number, (_, hash)) in (0..).zip(&self.ends) {
            let mut at = *hash as usize & (size - 1);
            while self.slots[at].number != NONE {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = Slot { tag: tag(*hash), number };
        }
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}
