//! Builds dictionaries of column chunks: each distinct value is stored once, and pages hold its index (code).

use arrow::array::{Array, StringViewArray};
use xxhash_rust::xxh3::xxh3_64;

use super::supported_columns::NumberWidth;
use crate::stats::mix;
use crate::writer::encodings::DICTIONARY_BYTES_MAX;

/// Largest length of strings that are stored in their view.
const INLINE_BYTES_MAX: usize = 12;

/// Dictionary of numbers, compared by their bits.
#[derive(Default)]
pub(super) struct NumberDictionaryBuilder {
    code_table: CodeTable,
    values: Vec<i64>,
}

/// Dictionary of strings.
#[derive(Default)]
pub(super) struct StringDictionaryBuilder {
    code_table: CodeTable,
    /// Key of each string: the view of a short one, else length and hash.
    string_keys: Vec<u128>,
    /// End of each string in `page_bytes`.
    string_ends: Vec<usize>,
    /// Content of the dictionary page: strings, each preceded by its length.
    page_bytes: Vec<u8>,
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
            let slot = match self.code_table.find(hash, |code| self.values[code] == *lane) {
                CodeLookup::Code(code) => {
                    codes.push(code as u64);
                    continue;
                }
                CodeLookup::FreeSlot(slot) => slot,
            };
            if DICTIONARY_BYTES_MAX <= self.values.len() * width.bytes() {
                self.values.truncate(entries_before);
                self.code_table = CodeTable::from_hashes(self.hashes());
                return false;
            }
            codes.push(self.values.len() as u64);
            self.values.push(*lane);
            if self.code_table.fill_slot(slot, self.values.len()) {
                self.code_table = CodeTable::from_hashes(self.hashes());
            }
        }
        true
    }

    /// Returns the content of the dictionary page.
    pub(super) fn page_bytes(&self, width: NumberWidth) -> Vec<u8> {
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
        self.string_keys.len()
    }

    /// Returns the content of the dictionary page.
    pub(super) fn page_bytes(&self) -> &[u8] {
        &self.page_bytes
    }

    /// Appends the codes of all values that are not NULL. Returns false if the dictionary would become too large; then
    /// only `codes` has changed.
    pub(super) fn append_codes(&mut self, values: &[StringViewArray], codes: &mut Vec<u64>) -> bool {
        let known = self.len();
        for part in values {
            for row in (0..part.len()).filter(|row| part.is_valid(*row)) {
                let text = part.value(row).as_bytes();
                let Some(code) = self.find_or_insert(string_key(part.views()[row], text), text) else {
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
        let is_it =
            |code: usize| self.string_keys[code] == key && (text.len() <= INLINE_BYTES_MAX || self.get(code) == text);
        let slot = match self.code_table.find(hash(key), is_it) {
            CodeLookup::Code(code) => return Some(code),
            CodeLookup::FreeSlot(slot) => slot,
        };
        if DICTIONARY_BYTES_MAX < self.page_bytes.len() + 4 + text.len() {
            return None;
        }
        append_plain(text, &mut self.page_bytes);
        self.string_keys.push(key);
        self.string_ends.push(self.page_bytes.len());
        if self.code_table.fill_slot(slot, self.string_keys.len()) {
            self.code_table = CodeTable::from_hashes(self.hashes());
        }
        Some(self.string_keys.len() - 1)
    }

    fn get(&self, code: usize) -> &[u8] {
        &self.page_bytes[self.string_start(code) + 4..self.string_ends[code]]
    }

    fn string_start(&self, code: usize) -> usize {
        code.checked_sub(1).map_or(0, |before| self.string_ends[before])
    }

    /// Removes all strings but the first `count`.
    fn truncate(&mut self, count: usize) {
        self.page_bytes.truncate(self.string_start(count));
        self.string_keys.truncate(count);
        self.string_ends.truncate(count);
        self.code_table = CodeTable::from_hashes(self.hashes());
    }

    fn hashes(&self) -> impl ExactSizeIterator<Item = u64> {
        self.string_keys.iter().map(|key| hash(*key))
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
fn string_key(view: u128, text: &[u8]) -> u128 {
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
enum CodeLookup {
    Code(usize),
    /// Slot for the new code.
    FreeSlot(usize),
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
    fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> CodeLookup {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return CodeLookup::FreeSlot(slot),
                next if is_it(next as usize - 1) => return CodeLookup::Code(next as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Stores the last of `count` codes in a free slot; returns true if half of the slots are used now.
    fn fill_slot(&mut self, slot: usize, count: usize) -> bool {
        self.slots[slot] = u32::try_from(count).expect("dictionary size is limited, so codes have 32 bits");
        self.slots.len() <= count * 2
    }
}
