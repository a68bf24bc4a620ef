//! The values of a chunk that come again and again, each once: what stands for one in the pages is its code.

use arrow::array::{Array, StringViewArray};
use xxhash_rust::xxh3::xxh3_64;

use super::form::Width;
use crate::stats::mix;
use crate::writer::encodings::DICTIONARY_BYTES_MAX;

/// A string of so many bytes is all in its view.
const INLINE_BYTES_MAX: usize = 12;

/// Numbers by their bits.
#[derive(Default)]
pub(super) struct Numbers {
    slots: Slots,
    values: Vec<i64>,
}

/// Strings.
#[derive(Default)]
pub(super) struct Texts {
    slots: Slots,
    /// What tells strings apart: of a short one its view, of others their length and hash.
    keys: Vec<u128>,
    /// Where each ends in `plain`.
    ends: Vec<usize>,
    /// Each behind its length, as they lie in a dictionary page.
    plain: Vec<u8>,
}

impl Numbers {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Appends the codes of all of `lanes`; false, and nothing has changed but `codes`, where the dictionary would become too large.
    pub(super) fn append_codes(&mut self, lanes: &[i64], width: Width, codes: &mut Vec<u64>) -> bool {
        let known = self.len();
        codes.reserve(lanes.len());
        for lane in lanes {
            let hash = mix(lane.cast_unsigned());
            let slot = match self.slots.find(hash, |code| self.values[code] == *lane) {
                Found::Code(code) => {
                    codes.push(code as u64);
                    continue;
                }
                Found::Free(slot) => slot,
            };
            if DICTIONARY_BYTES_MAX <= self.values.len() * width.bytes() {
                self.values.truncate(known);
                self.slots = Slots::of(self.hashes());
                return false;
            }
            codes.push(self.values.len() as u64);
            self.values.push(*lane);
            if self.slots.fill(slot, self.values.len()) {
                self.slots = Slots::of(self.hashes());
            }
        }
        true
    }

    /// The dictionary's page.
    pub(super) fn plain(&self, width: Width) -> Vec<u8> {
        let mut bytes = Vec::new();
        width.plain(&self.values, &mut bytes);
        bytes
    }

    fn hashes(&self) -> impl ExactSizeIterator<Item = u64> {
        self.values.iter().map(|value| mix(value.cast_unsigned()))
    }
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of the dictionary's page.
    pub(super) fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Appends the codes of all values but NULLs; false, and nothing has changed but `codes`, where the dictionary would become too large.
    pub(super) fn append_codes(&mut self, values: &[StringViewArray], codes: &mut Vec<u64>) -> bool {
        let known = self.len();
        for part in values {
            for row in (0..part.len()).filter(|row| part.is_valid(*row)) {
                let text = part.value(row).as_bytes();
                let Some(code) = self.code(key(part.views()[row], text), text) else {
                    self.truncate(known);
                    return false;
                };
                codes.push(code as u64);
            }
        }
        true
    }

    /// The code of a string; `None` where there is no room for it.
    #[inline]
    fn code(&mut self, key: u128, text: &[u8]) -> Option<usize> {
        let is_it = |code: usize| self.keys[code] == key && (text.len() <= INLINE_BYTES_MAX || self.get(code) == text);
        let slot = match self.slots.find(hash(key), is_it) {
            Found::Code(code) => return Some(code),
            Found::Free(slot) => slot,
        };
        if DICTIONARY_BYTES_MAX < self.plain.len() + 4 + text.len() {
            return None;
        }
        append_plain(text, &mut self.plain);
        self.keys.push(key);
        self.ends.push(self.plain.len());
        if self.slots.fill(slot, self.keys.len()) {
            self.slots = Slots::of(self.hashes());
        }
        Some(self.keys.len() - 1)
    }

    fn get(&self, code: usize) -> &[u8] {
        &self.plain[self.start(code) + 4..self.ends[code]]
    }

    fn start(&self, code: usize) -> usize {
        code.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn truncate(&mut self, count: usize) {
        self.plain.truncate(self.start(count));
        self.keys.truncate(count);
        self.ends.truncate(count);
        self.slots = Slots::of(self.hashes());
    }

    fn hashes(&self) -> impl ExactSizeIterator<Item = u64> {
        self.keys.iter().map(|key| hash(*key))
    }
}

/// Appends a string behind its length.
pub(super) fn append_plain(text: &[u8], bytes: &mut Vec<u8>) {
    let length = u32::try_from(text.len()).expect("Arrow's views have no longer strings");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text);
}

/// Views and keys of long strings are never the same: both begin with the length.
#[inline]
fn key(view: u128, text: &[u8]) -> u128 {
    if text.len() <= INLINE_BYTES_MAX { view } else { u128::from(xxh3_64(text)) << 64 | text.len() as u128 }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a key")]
fn hash(key: u128) -> u64 {
    mix(key as u64 ^ ((key >> 64) as u64).rotate_left(32))
}

/// Codes by the hashes of what they stand for, in open addressing.
struct Slots {
    /// One more than a code; 0 where there is none. At least half are free.
    slots: Vec<u32>,
}

enum Found {
    Code(usize),
    /// Where the code would stand.
    Free(usize),
}

impl Default for Slots {
    fn default() -> Self {
        Self { slots: vec![0; 1 << 8] }
    }
}

impl Slots {
    /// Of codes in their order, with room for as many more.
    fn of(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
        let mask = (hashes.len() * 4).next_power_of_two().max(1 << 8) - 1;
        let mut slots = vec![0; mask + 1];
        for (hash, next) in hashes.zip(1..) {
            let mut slot = hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = next;
        }
        Self { slots }
    }

    #[inline]
    fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Found {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return Found::Free(slot),
                next if is_it(next as usize - 1) => return Found::Code(next as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Puts the last of `count` codes into a free slot; whether half are taken now.
    fn fill(&mut self, slot: usize, count: usize) -> bool {
        self.slots[slot] = u32::try_from(count).expect("a dictionary ends at its size");
        self.slots.len() <= count * 2
    }
}
