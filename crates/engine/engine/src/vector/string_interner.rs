//! Dense numbering of distinct strings.

use std::ops::Range;

use arrow::array::{StringViewArray, StringViewBuilder};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, NONE, Result};

/// Hash table that assigns distinct strings consecutive numbers in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct StringInterner {
    /// Slots of the open-addressing hash table; their number is a power of two, and at most half of them are used.
    slots: Vec<Slot>,
    /// All strings, concatenated.
    text: String,
    /// End offset of each string in `text`, and its hash.
    ends: Vec<(usize, u64)>,
}

/// Number of a string, and the upper half of its hash for quick rejection.
#[derive(Debug, Clone, Copy)]
struct Slot {
    tag: u32,
    number: u32,
}

const EMPTY_SLOT: Slot = Slot { tag: 0, number: NONE };

impl StringInterner {
    /// Returns the number of distinct strings.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the string with this number.
    pub(crate) fn get(&self, number: usize) -> &str {
        &self.text[self.range(number)]
    }

    /// Returns the hash of the string with this number.
    pub(crate) fn hash_of(&self, number: usize) -> Option<u64> {
        self.ends.get(number).map(|(_, hash)| *hash)
    }

    /// Iterates over the hashes of all strings in the order of their numbers.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.ends.iter().map(|(_, hash)| *hash)
    }

    /// Iterates over the strings in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Returns all strings as an array in the order of their numbers.
    pub(crate) fn to_array(&self) -> StringViewArray {
        let mut builder = StringViewBuilder::with_capacity(self.len());
        self.iter().for_each(|string| builder.append_value(string));
        builder.finish()
    }

    /// Returns the number of a string, assigning the next one to a new string.
    pub(crate) fn intern(&mut self, text: &str) -> Result<u32> {
        self.intern_hashed(text, xxh3_64(text.as_bytes()))
    }

    /// Works like [`StringInterner::intern`] for a string whose hash is already computed.
    pub(crate) fn intern_hashed(&mut self, text: &str, hash: u64) -> Result<u32> {
        if self.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.find_slot(text, hash);
        if self.slots[slot].number != NONE {
            return Ok(self.slots[slot].number);
        }
        let number = u32::try_from(self.len()).ok().filter(|number| *number < NONE - 1);
        let number = number.ok_or(Error::OutOfMemory("the distinct strings of a column"))?;
        self.text.push_str(text);
        self.ends.push((self.text.len(), hash));
        self.slots[slot] = Slot { tag: hash_tag(hash), number };
        Ok(number)
    }

    /// Returns the number of a string, or [`NONE`] if it has none.
    #[inline]
    pub(crate) fn find(&self, text: &str) -> u32 {
        if self.slots.is_empty() {
            return NONE;
        }
        self.slots[self.find_slot(text, xxh3_64(text.as_bytes()))].number
    }

    /// Returns the allocated bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.text.capacity() + self.ends.capacity() * 16
    }

    /// Returns the slot of the string, or the free slot where it would be inserted.
    #[inline]
    fn find_slot(&self, text: &str, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let is_same = |number: u32| self.text.as_bytes()[self.range(number as usize)] == *text.as_bytes();
            if slot.number == NONE || (slot.tag == hash_tag(hash) && is_same(slot.number)) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before].0);
        start..self.ends[number].0
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(size, EMPTY_SLOT);
        for (number, (_, hash)) in (0..).zip(&self.ends) {
            let mut at = *hash as usize & (size - 1);
            while self.slots[at].number != NONE {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = Slot { tag: hash_tag(*hash), number };
        }
    }
}

fn hash_tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}
