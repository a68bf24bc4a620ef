//! Builds dictionaries of column chunks: each distinct value is stored once, and pages hold its index (code).

use arrow::array::{Array, StringViewArray};
use xxhash_rust::xxh3::xxh3_64;

use super::form::NumberWidth;
use crate::stats::mix;
use crate::writer::encodings::DICTIONARY_BYTES_MAX;

/// Largest length of strings that are stored in their view.
const INLINE_BYTES_MAX: usize = 12;

/// Dictionary of numbers, compared by their bits.
#[derive(Default)]
pub(super) struct NumberDictionaryBuilder {
    slots: CodeTable,
    values: Vec<i64>,
}

/// Dictionary of strings.
#[derive(Default)]
pub(super) struct StringDictionaryBuilder {
    slots: CodeTable,
    /// Key of each string: the view of a short one, else length and hash.
    keys: Vec<u128>,
    /// End of each string in `plain`.
    ends: Vec<usize>,
    /// Content of the dictionary page: strings, each preceded by its length.
    plain: Vec<u8>,
}

impl NumberDictionaryBuilder {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Appends the codes of all `lanes`. Returns false if the dictionary would become too large; then only `codes` has
    /// changed.
    pub(super) fn append_codes(&mut self, lanes: &[i64], width: NumberWidth, codes: &mut Vec<u64>) -> bool {
        let entries_before = self.len();
        codes.reserve(lanes.len());
        for lane in lanes {
            let hash = mix(lane.cast_unsigned());
            let slot = match self.slots.find(hash, |code| self.values[code] == *lane) {
                Lookup::Code(code) => {
                    codes.push(code as u64);
                    continue;
                }
                Lookup::Free(slot) => slot,
            };
            if DICTIONARY_BYTES_MAX <= self.values.len() * width.bytes() {
                self.values.truncate(entries_before);
                self.slots = CodeTable::from_hashes(self.hashes());
                return false;
            }
            codes.push(self.values.len() as u64);
            self.values.push(*lane);
            if self.slots.fill(slot, self.values.len()) {
                self.slots = CodeTable::from_hashes(self.hashes());
            }
        }
        true
    }

    /// Returns the content of the dictionary page.
    pub(super) fn plain(&self, width: NumberWidth) -> Vec<u8> {
        let mut bytes = Vec::new();
        width.append_plain(&self.values, &mut bytes);
        bytes
    }

    fn hashes(&self) -> impl ExactSizeIterator<Item = u64> {
        self.values.iter().map(|value| mix(value.cast_unsigned()))
    }
}

impl StringDictionaryBuilder {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the content of the dictionary page.
    pub(super) fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Appends the codes of all values that are not NULL. Returns false if the dictionary would become too large; then
    /// only `codes` has changed.
    pub(super) fn append_codes(&mut self, values: &[StringViewArray], codes: &mut Vec<u64>) -> bool {
        let known = self.len();
        for part in values {
            for row in (0..part.len()).filter(|row| part.is_valid(*row)) {
                let text = part.value(row).as_bytes();
                let Some(code) = self.find_or_insert(key(part.views()[row], text), text) else {
                    self.truncate(known);
                    return false;
                };
                codes.push(code as u64);
            }
        }
        true
    }

    /// Returns the code of a string, added if it is new; `None` if there is no room.
    #[inline]
    fn find_or_insert(&mut self, key: u128, text: &[u8]) -> Option<usize> {
        let is_it = |code: usize| self.keys[code] == key && (text.len() <= INLINE_BYTES_MAX || self.get(code) == text);
        let slot = match self.slots.find(hash(key), is_it) {
            Lookup::Code(code) => return Some(code),
            Lookup::Free(slot) => slot,
        };
        if DICTIONARY_BYTES_MAX < self.plain.len() + 4 + text.len() {
            return None;
        }
        append_plain(text, &mut self.plain);
        self.keys.push(key);
        self.ends.push(self.plain.len());
        if self.slots.fill(slot, self.keys.len()) {
            self.slots = CodeTable::from_hashes(self.hashes());
        }
        Some(self.keys.len() - 1)
    }

    fn get(&self, code: usize) -> &[u8] {
        &self.plain[self.start(code) + 4..self.ends[code]]
    }

    fn start(&self, code: usize) -> usize {
        code.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Removes all strings but the first `count`.
    fn truncate(&mut self, count: usize) {
        self.plain.truncate(self.start(count));
        self.keys.truncate(count);
        self.ends.truncate(count);
        self.slots = CodeTable::from_hashes(self.hashes());
    }

    fn hashes(&self) -> impl ExactSizeIterator<Item = u64> {
        self.keys.iter().map(|key| hash(*key))
    }
}

/// Appends a string, preceded by its length.
pub(super) fn append_plain(text: &[u8], bytes: &mut Vec<u8>) {
    let length = u32::try_from(text.len()).expect("lengths in Arrow's string views have 32 bits");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text);
}

/// Returns the key of a string. Keys of short and long strings never collide, because both contain the length.
#[inline]
fn key(view: u128, text: &[u8]) -> u128 {
    if text.len() <= INLINE_BYTES_MAX { view } else { u128::from(xxh3_64(text)) << 64 | text.len() as u128 }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves of a key")]
fn hash(key: u128) -> u64 {
    mix(key as u64 ^ ((key >> 64) as u64).rotate_left(32))
}

/// Hash table from hashes to codes, with open addressing and linear probing.
struct CodeTable {
    /// Code plus 1, or 0 in a free slot. At least half of the slots are free.
    slots: Vec<u32>,
}

/// Result of a lookup.
enum Lookup {
    Code(usize),
    /// Slot for the new code.
    Free(usize),
}

impl Default for CodeTable {
    fn default() -> Self {
        Self { slots: vec![0; 1 << 8] }
    }
}

impl CodeTable {
    /// Builds the table of all codes in order, with room for as many more.
    fn from_hashes(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
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
    fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Lookup {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return Lookup::Free(slot),
                next if is_it(next as usize - 1) => return Lookup::Code(next as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Stores the last of `count` codes in a free slot; returns true if half of the slots are used now.
    fn fill(&mut self, slot: usize, count: usize) -> bool {
        self.slots[slot] = u32::try_from(count).expect("dictionary size is limited, so codes have 32 bits");
        self.slots.len() <= count * 2
    }
}
