//! Building of dictionaries.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

use crate::block_header::align_up;
use crate::dictionary::{Dictionary, HEADER_BYTES, MAGIC, VERSION, checksum, hash_text};
use crate::{Error, Result};

/// Builder that collects distinct strings. It numbers them by first occurrence; their dictionary indices, which follow
/// the sort order, are known only when all strings are collected.
#[derive(Default)]
pub struct DictionaryBuilder {
    /// Numbers of the strings by first occurrence.
    numbers: HashMap<Box<[u8]>, u32, BuildHasherDefault<UnbufferedXxh3Hasher>>,
    /// Total length of the strings.
    bytes: usize,
}

/// One-shot XXH3 hasher: XXH3's streaming state costs more than hashing short strings.
#[derive(Default)]
struct UnbufferedXxh3Hasher(u64);

impl Hasher for UnbufferedXxh3Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_usize(&mut self, number: usize) {
        self.0 ^= number as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl DictionaryBuilder {
    /// Adds a string and returns its number by first occurrence.
    pub fn insert(&mut self, value: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = self.numbers.len() as u32;
        self.bytes += value.len();
        self.numbers.insert(value.into(), number);
        number
    }

    /// Returns the number of distinct strings.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the total length of the distinct strings, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.bytes
    }

    /// Builds the dictionary; returns it with the dictionary index of each number that [`Self::insert`] returned.
    pub fn finish(self) -> Result<(Dictionary, Vec<u32>)> {
        if u32::try_from(self.bytes).is_err() {
            return Err(Error::TooLarge("the strings of a dictionary exceed 4 GiB"));
        }
        let mut strings: Vec<(Box<[u8]>, u32)> = self.numbers.into_iter().collect();
        strings.sort_unstable();
        let mut codes = vec![0; strings.len()];
        for (code, (_, number)) in strings.iter().enumerate() {
            codes[*number as usize] = code as u32;
        }
        let bytes = write(strings.iter().map(|(string, _)| &**string), strings.len(), self.bytes);
        Ok((Dictionary::open(bytes)?, codes))
    }
}

impl Dictionary {
    /// Builds the dictionary of strings that are sorted and distinct.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the strings have more than 4 GiB.
    pub fn from_sorted(strings: &[&[u8]]) -> Result<Self> {
        debug_assert!(strings.is_sorted_by(|one, next| one < next), "strings must be sorted and distinct");
        let bytes = strings.iter().map(|string| string.len()).sum();
        if u32::try_from(bytes).is_err() {
            return Err(Error::TooLarge("the strings of a dictionary exceed 4 GiB"));
        }
        Self::open(write(strings.iter().copied(), strings.len(), bytes))
    }
}

/// Encodes a dictionary of sorted, distinct strings.
fn write<'a>(strings: impl Iterator<Item = &'a [u8]> + Clone, count: usize, heap_bytes: usize) -> Bytes {
    let hashes_at = align_up(HEADER_BYTES + count * 4);
    let heap_at = align_up(hashes_at + count * 8);
    let mut bytes = vec![0; heap_at + heap_bytes];
    let mut end = 0;
    for (code, string) in strings.enumerate() {
        bytes[heap_at + end..][..string.len()].copy_from_slice(string);
        end += string.len();
        bytes[HEADER_BYTES + code * 4..][..4].copy_from_slice(&(end as u32).to_le_bytes());
        bytes[hashes_at + code * 8..][..8].copy_from_slice(&hash_text(string).to_le_bytes());
    }
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..20].copy_from_slice(&(count as u32).to_le_bytes());
    let content = xxh3_128(&bytes[HEADER_BYTES..]);
    bytes[32..48].copy_from_slice(&content.to_le_bytes());
    let checksum = checksum(&bytes);
    bytes[8..16].copy_from_slice(&checksum.to_le_bytes());
    Bytes::from(bytes)
}
