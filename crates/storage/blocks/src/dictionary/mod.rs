//! Dictionaries: the sorted distinct strings of a shard's column, whose blocks contain indices into it.
//!
//! A dictionary is stored separately from the blocks (`docs/blocks.md`). Equal dictionaries have equal content hashes,
//! so that caches can share them.

mod builder;

use bytes::Bytes;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub use builder::DictionaryBuilder;

use crate::block_body::ensure;
use crate::block_header::{align_up, read_array};
use crate::text_condition::TextMatcher;
use crate::{Comparison, Error, KeyRanges, Result, TextCondition};

const MAGIC: [u8; 4] = *b"KDCT";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 64;

/// A validated dictionary of distinct strings, ascending by their bytes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Dictionary {
    /// The stored form.
    bytes: Bytes,
    /// End offset of each string in the heap, 4 bytes each.
    ends: Bytes,
    /// Hash of each string, 8 bytes each.
    hashes: Bytes,
    /// Concatenated strings.
    heap: Bytes,
    /// Hash of all strings.
    content_hash: u128,
}

impl Dictionary {
    /// Opens a dictionary and validates it, so that untrusted bytes give a dictionary or an error.
    pub fn open(bytes: Bytes) -> Result<Self> {
        let header: &[u8; HEADER_BYTES] =
            bytes.first_chunk().ok_or(Error::Damaged("the dictionary is shorter than its header"))?;
        ensure(header[..4] == MAGIC, "the dictionary does not start with the magic bytes of a dictionary")?;
        let version = u16::from_le_bytes(read_array(header, 4));
        if version != VERSION {
            return Err(Error::UnsupportedVersion(version));
        }
        ensure(
            u64::from_le_bytes(read_array(header, 8)) == checksum(&bytes),
            "a dictionary does not match its checksum",
        )?;
        let count = u32::from_le_bytes(read_array(header, 16)) as usize;
        let section = |at: usize, length: usize| {
            let end = at.checked_add(length).filter(|end| *end <= bytes.len());
            end.map(|end| bytes.slice(at..end)).ok_or(Error::Damaged("a section extends beyond the dictionary's end"))
        };
        let ends = section(HEADER_BYTES, count * 4)?;
        let hashes_at = align_up(HEADER_BYTES + ends.len());
        let hashes = section(hashes_at, count * 8)?;
        let heap_at = align_up(hashes_at + hashes.len());
        let heap = section(heap_at, bytes.len().saturating_sub(heap_at))?;
        let dictionary = Self {
            ends,
            hashes,
            heap,
            content_hash: u128::from_le_bytes(read_array(header, 32)),
            bytes: bytes.clone(),
        };
        dictionary.check()?;
        Ok(dictionary)
    }

    /// Checks that the strings ascend and fill the heap.
    fn check(&self) -> Result<()> {
        let count = self.ends.len() / 4;
        ensure(
            (1..count).all(|code| self.end(code - 1) <= self.end(code)),
            "the end offsets of a dictionary's strings are not ascending",
        )?;
        ensure(
            self.end_of(count) == self.heap.len(),
            "the last string of a dictionary does not end at its heap's end",
        )?;
        ensure((1..count).all(|code| self.entry(code - 1) < self.entry(code)), "a dictionary is not sorted")
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.ends.len() / 4
    }

    /// Whether the dictionary is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the stored form of the dictionary.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns a hash of all strings.
    pub fn content_hash(&self) -> u128 {
        self.content_hash
    }

    /// Returns the string at a dictionary index.
    pub fn get(&self, code: u32) -> Option<&[u8]> {
        ((code as usize) < self.len()).then(|| self.entry(code as usize))
    }

    /// Returns the hash, as computed by [`hash_text`], of the string at a dictionary index.
    pub fn hash_of(&self, code: u32) -> Option<u64> {
        ((code as usize) < self.len()).then(|| u64::from_le_bytes(read_array(&self.hashes, code as usize * 8)))
    }

    /// Returns the dictionary index of a string; `None` if it does not occur.
    pub fn code_of(&self, value: &[u8]) -> Option<u32> {
        let code = self.partition_point(|entry| entry < value);
        (self.get(code) == Some(value)).then_some(code)
    }

    /// Evaluates a condition and returns the dictionary indices for which it is true. Uses binary search where the sort
    /// order permits, else tests every string.
    pub fn matching(&self, condition: &TextCondition) -> KeyRanges {
        let behind = |value: &[u8]| self.partition_point(|entry| entry <= value);
        let from = |value: &[u8]| self.partition_point(|entry| entry < value);
        let end = self.len() as u32;
        // Half-open ranges of dictionary indices.
        let ranges = match condition {
            TextCondition::Compare(Comparison::Less, value) => vec![(0, from(value))],
            TextCondition::Compare(Comparison::LessOrEqual, value) => vec![(0, behind(value))],
            TextCondition::Compare(Comparison::Equal, value) => vec![(from(value), behind(value))],
            TextCondition::Compare(Comparison::NotEqual, value) => vec![(0, from(value)), (behind(value), end)],
            TextCondition::Compare(Comparison::GreaterOrEqual, value) => vec![(from(value), end)],
            TextCondition::Compare(Comparison::Greater, value) => vec![(behind(value), end)],
            TextCondition::Between(low, high) => vec![(from(low), behind(high))],
            TextCondition::In(values) => values.iter().map(|value| (from(value), behind(value))).collect(),
            TextCondition::Like { pattern, is_negated } if pattern.is_prefix() => {
                let prefix = pattern.prefix.as_slice();
                let is_before_end = |entry: &[u8]| entry < prefix || entry.starts_with(prefix);
                let (first, behind) = (from(prefix), self.partition_point(is_before_end));
                if *is_negated { vec![(0, first), (behind, end)] } else { vec![(first, behind)] }
            }
            TextCondition::Like { is_negated, .. } => {
                let ends: Vec<u32> = self.ends.as_chunks().0.iter().map(|end| u32::from_le_bytes(*end)).collect();
                let mut is_like = vec![false; ends.len()];
                TextMatcher::new(condition).search(&self.heap, &ends, |code| is_like[code] = true);
                (0..end).filter(|code| is_like[*code as usize] != *is_negated).map(|code| (code, code + 1)).collect()
            }
            TextCondition::IsNull => vec![],
            TextCondition::IsNotNull => vec![(0, end)],
        };
        KeyRanges::new(ranges.into_iter().map(|(first, behind)| (first.into(), i64::from(behind) - 1)).collect())
    }

    /// Returns the dictionary indices of the strings for which `is_true` holds.
    pub fn codes_matching_predicate(&self, mut is_true: impl FnMut(&[u8]) -> bool) -> KeyRanges {
        let codes = (0..self.len()).filter(|code| is_true(self.entry(*code)));
        KeyRanges::new(codes.map(|code| (code as i64, code as i64)).collect())
    }

    /// Returns the first dictionary index for which `is_before` is false, by binary search.
    fn partition_point(&self, is_before: impl Fn(&[u8]) -> bool) -> u32 {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.entry(middle)) { low = middle + 1 } else { high = middle }
        }
        low as u32
    }

    fn entry(&self, code: usize) -> &[u8] {
        &self.heap[self.end_of(code)..self.end(code)]
    }

    /// Returns the end offset of the first `codes` strings.
    fn end_of(&self, codes: usize) -> usize {
        if codes == 0 { 0 } else { self.end(codes - 1) }
    }

    fn end(&self, code: usize) -> usize {
        u32::from_le_bytes(read_array(&self.ends, code * 4)) as usize
    }
}

/// Returns the hash of a string, the same in every dictionary, so that columns with different dictionaries can be
/// joined.
pub fn hash_text(value: &[u8]) -> u64 {
    xxh3_64(value)
}

/// Computes the checksum of a dictionary without the checksum itself.
fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(&bytes[16..], u64::from_le_bytes(read_array(bytes, 0)))
}

#[cfg(test)]
mod tests;
