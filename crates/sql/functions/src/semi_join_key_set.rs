//! Set of keys of a semi-join reduction, small enough to be sent with a plan: a bitmap or a blocked Bloom filter.

use std::fmt;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(test)]
mod tests;

/// Limit on the keys of a set, because it is sent to all workers.
pub const KEYS_MAX: usize = 4_000_000;

/// Limit on the size of an exact bitmap, in bits per key. Keys with a wider range become a Bloom filter.
const EXACT_BITS_PER_KEY: u64 = 64;
/// Size of the Bloom filter, in bits per key.
const BLOOM_BITS_PER_KEY: usize = 16;
/// Size in bits up to which a bitmap is used whatever the number of keys.
const EXACT_BITS_MIN: u64 = 1 << 16;

/// Set of integers or days. An exact bitmap if the range is narrow, else a Bloom filter with false positives.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeySet {
    min: i64,
    /// Greatest key; less than `min` for an empty set.
    max: i64,
    /// Number of keys, with duplicates.
    input_key_count: u64,
    /// Bitmap of the values from `min` on, or the words of a blocked Bloom filter.
    words: Vec<u64>,
    is_exact: bool,
}

impl KeySet {
    /// Returns whether a set can have keys of this type.
    #[must_use]
    pub fn supports_type(of: &DataType) -> bool {
        matches!(of, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
    }

    /// Returns the values of an array without NULLs; `None` for a type that [`KeySet::supports_type`] rejects.
    #[must_use]
    pub fn values(array: &ArrayRef) -> Option<Vec<i64>> {
        macro_rules! of {
            ($($form:ident = $type:ty),*) => {
                match array.data_type() {
                    $(DataType::$form => Some(array.as_primitive::<$type>().iter().flatten().map(i64::from).collect()),)*
                    _ => None,
                }
            };
        }
        of!(Int8 = Int8Type, Int16 = Int16Type, Int32 = Int32Type, Int64 = Int64Type, Date32 = Date32Type)
    }

    /// Builds the set of `keys`.
    #[must_use]
    pub fn from_keys(keys: &[i64]) -> Self {
        let (min, max) = keys.iter().fold((i64::MAX, i64::MIN), |(min, max), key| (min.min(*key), max.max(*key)));
        let count = keys.len() as u64;
        let none = Self { min, max, input_key_count: count, words: Vec::new(), is_exact: true };
        if keys.is_empty() {
            return none;
        }
        let span = max.wrapping_sub(min).cast_unsigned();
        let is_exact = span < EXACT_BITS_MIN.max(count * EXACT_BITS_PER_KEY);
        let words = if is_exact { span / 64 + 1 } else { (keys.len() * BLOOM_BITS_PER_KEY).div_ceil(64) as u64 };
        let mut set = Self { words: vec![0; words as usize], is_exact, ..none };
        for key in keys {
            let (word, bits) = set.bit_position(*key);
            set.words[word] |= bits;
        }
        set
    }

    /// Returns the number of keys, which counts duplicates.
    #[must_use]
    pub fn input_key_count(&self) -> u64 {
        self.input_key_count
    }

    /// Returns whether a value may be in the set; false positives are possible.
    #[must_use]
    pub fn may_contain(&self, value: i64) -> bool {
        if value < self.min || self.max < value {
            return false;
        }
        let (word, bits) = self.bit_position(value);
        self.words[word] & bits == bits
    }

    /// Tests many values: returns a bitmap in which value `v` is bit `v % 64` of word `v / 64`, with false positives.
    #[must_use]
    pub fn test_values(&self, values: &[i64]) -> Vec<u64> {
        // Branch-free, because this runs over millions of values.
        if self.words.is_empty() {
            return vec![0; values.len().div_ceil(64)];
        }
        let (words, last) = (self.words.as_slice(), self.words.len() as u64 - 1);
        let span = self.max.wrapping_sub(self.min).cast_unsigned();
        if self.is_exact {
            return collect_bits(values, |value| {
                let offset = value.wrapping_sub(self.min).cast_unsigned();
                let word = words[last.min(offset / 64) as usize];
                (word >> (offset % 64) & 1) & u64::from(offset <= span)
            });
        }
        collect_bits(values, |value| {
            let (word, bits) = bloom_position(value, last + 1);
            let is_within = value.wrapping_sub(self.min).cast_unsigned() <= span;
            u64::from(words[word] & bits == bits) & u64::from(is_within)
        })
    }

    /// Tests each row of an array; NULL is not in the set. `None` for a type that [`KeySet::supports_type`] rejects.
    #[must_use]
    pub fn test_array(&self, array: &ArrayRef) -> Option<BooleanArray> {
        macro_rules! of {
            ($($form:ident = $type:ty),*) => {
                match array.data_type() {
                    $(DataType::$form => {
                        let values: Vec<i64> = array.as_primitive::<$type>().values().iter().map(|value| i64::from(*value)).collect();
                        BooleanBuffer::new(Buffer::from_vec(self.test_values(&values)), 0, values.len())
                    })*
                    _ => return None,
                }
            };
        }
        let has = of!(Int8 = Int8Type, Int16 = Int16Type, Int32 = Int32Type, Int64 = Int64Type, Date32 = Date32Type);
        let has = match array.nulls() {
            Some(nulls) => &has & nulls.inner(),
            None => has,
        };
        Some(BooleanArray::new(has, None))
    }

    /// Returns the index of the word for a value within the bounds, and the bits it sets there.
    fn bit_position(&self, value: i64) -> (usize, u64) {
        if self.is_exact {
            let offset = value.wrapping_sub(self.min).cast_unsigned();
            return ((offset / 64) as usize, 1 << (offset % 64));
        }
        bloom_position(value, self.words.len() as u64)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let numbers =
            [self.min.cast_unsigned(), self.max.cast_unsigned(), self.input_key_count, u64::from(self.is_exact)];
        numbers.iter().chain(&self.words).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Decodes the output of [`KeySet::to_bytes`]; `None` if it is invalid.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next();
        let (min, max, count) = (next()?.cast_signed(), next()?.cast_signed(), next()?);
        let is_exact = next()? == 1;
        let set = Self { min, max, input_key_count: count, words: words.collect(), is_exact };
        let span = max.wrapping_sub(min).cast_unsigned();
        let needed = match (min <= max, is_exact) {
            (false, _) => 0,
            (true, true) => span / 64 + 1,
            (true, false) => 1,
        };
        (needed <= set.words.len() as u64).then_some(set)
    }
}

/// Returns the index, among `words` words of a Bloom filter, of the word for a value, and the three bits it sets
/// there.
#[inline]
fn bloom_position(value: i64, words: u64) -> (usize, u64) {
    // Multiplicative (Fibonacci) hashing; the upper half selects the word, and three groups of six low bits select
    // its bits.
    let hash = value.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = ((hash >> 32) * words) >> 32;
    (word as usize, 1 << (hash & 63) | 1 << ((hash >> 6) & 63) | 1 << ((hash >> 12) & 63))
}

/// Returns a bitmap of the lowest bits of `test`'s results.
#[inline]
fn collect_bits(values: &[i64], test: impl Fn(i64) -> u64) -> Vec<u64> {
    let word = |chunk: &[i64]| chunk.iter().enumerate().fold(0, |word, (bit, value)| word | test(*value) << bit);
    values.chunks(64).map(word).collect()
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys from {} to {}", self.input_key_count, self.min, self.max)
    }
}

impl Serialize for KeySet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for KeySet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = KeySet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a set of keys")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<KeySet, E> {
                KeySet::from_bytes(bytes).ok_or_else(|| E::custom("invalid encoding of a key set"))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}
