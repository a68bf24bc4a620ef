//! Dense numbering of pairs of 64-bit values.

use super::hash_index;
use crate::{Error, NONE, Result};

/// Hash table that assigns distinct pairs consecutive numbers in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct PairInterner {
    /// Slots of the open-addressing hash table; their number is a power of two, and at most half of them are used.
    slots: Vec<Slot>,
    /// Number of distinct pairs.
    len: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    pair: (u64, u64),
    number: u32,
}

const EMPTY_SLOT: Slot = Slot { pair: (0, 0), number: NONE };

impl PairInterner {
    /// Returns the number of distinct pairs.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Returns the number of a pair, assigning the next one to a new pair.
    pub(super) fn intern(&mut self, pair: (u64, u64)) -> Result<u32> {
        if self.len as usize * 2 >= self.slots.len() {
            self.grow();
        }
        let at = self.find_slot(pair);
        if self.slots[at].number == NONE {
            if self.len >= NONE - 1 {
                return Err(Error::OutOfMemory("the distinct keys of a join"));
            }
            self.slots[at] = Slot { pair, number: self.len };
            self.len += 1;
        }
        Ok(self.slots[at].number)
    }

    /// Returns the number of a pair, or [`NONE`] if it has none.
    #[inline]
    pub(super) fn find(&self, pair: (u64, u64)) -> u32 {
        if self.slots.is_empty() {
            return NONE;
        }
        self.slots[self.find_slot(pair)].number
    }

    /// Returns the allocated bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Returns the slot of the pair, or the free slot where it would be inserted.
    #[inline]
    fn find_slot(&self, pair: (u64, u64)) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash_index::hash(hash_index::hash(pair.0) ^ pair.1) as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.number == NONE || slot.pair == pair {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        let old = std::mem::replace(&mut self.slots, vec![EMPTY_SLOT; size]);
        for slot in old.into_iter().filter(|slot| slot.number != NONE) {
            let at = self.find_slot(slot.pair);
            self.slots[at] = slot;
        }
    }
}
