//! Some keys, small enough to go with a plan.

use std::fmt;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(test)]
mod tests;

/// Of more keys none is made: it would have to go to all workers.
pub const KEYS_MAX: usize = 4_000_000;

/// A bit for each value up to so many bits a key; values farther apart are put among so many bits by their hash.
const BITS_A_KEY: u64 = 64;
const BLOOM_BITS_A_KEY: usize = 16;
/// Bits that are few however few the keys are.
const BITS_FEW: u64 = 1 << 16;

/// The integers or days that a column may have. It has them all, and may seem to have others where they lie far apart.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KeySet {
    min: i64,
    /// Less than `min` where there are none.
    max: i64,
    /// How many there are, those among them that came twice.
    count: u64,
    /// A bit for each value from `min` on; or the words of a blocked Bloom filter.
    words: Vec<u64>,
    is_exact: bool,
}

impl KeySet {
    /// Whether keys of this type can be in one.
    #[must_use]
    pub fn holds(of: &DataType) -> bool {
        matches!(of, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
    }

    /// The values of an array, NULL left out; `None` for a type that [`KeySet::holds`] not.
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

    /// Of these keys.
    #[must_use]
    pub fn of(keys: &[i64]) -> Self {
        let (min, max) = keys.iter().fold((i64::MAX, i64::MIN), |(min, max), key| (min.min(*key), max.max(*key)));
        let count = keys.len() as u64;
        let none = Self { min, max, count, words: Vec::new(), is_exact: true };
        if keys.is_empty() {
            return none;
        }
        let span = max.wrapping_sub(min).cast_unsigned();
        let is_exact = span < BITS_FEW.max(count * BITS_A_KEY);
        let words = if is_exact { span / 64 + 1 } else { (keys.len() * BLOOM_BITS_A_KEY).div_ceil(64) as u64 };
        let mut set = Self { words: vec![0; words as usize], is_exact, ..none };
        for key in keys {
            let (word, bits) = set.place(*key);
            set.words[word] |= bits;
        }
        set
    }

    /// How many there are at most.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether a value is among them, or seems to be.
    #[must_use]
    pub fn may_have(&self, value: i64) -> bool {
        if value < self.min || self.max < value {
            return false;
        }
        let (word, bits) = self.place(value);
        self.words[word] & bits == bits
    }

    /// A bit for each value, as it is among them or seems to be: that of value `v` is bit `v % 64` of word `v / 64`.
    #[must_use]
    pub fn among(&self, values: &[i64]) -> Vec<u64> {
        // What is asked of millions of values has no branches that values decide.
        if self.words.is_empty() {
            return vec![0; values.len().div_ceil(64)];
        }
        let (words, last) = (self.words.as_slice(), self.words.len() as u64 - 1);
        let span = self.max.wrapping_sub(self.min).cast_unsigned();
        if self.is_exact {
            return each(values, |value| {
                let offset = value.wrapping_sub(self.min).cast_unsigned();
                let word = words[last.min(offset / 64) as usize];
                (word >> (offset % 64) & 1) & u64::from(offset <= span)
            });
        }
        each(values, |value| {
            let (word, bits) = bloom_place(value, last + 1);
            let is_within = value.wrapping_sub(self.min).cast_unsigned() <= span;
            u64::from(words[word] & bits == bits) & u64::from(is_within)
        })
    }

    /// For each row of an array whether it has one of the keys: NULL has none. `None` for a type that [`KeySet::holds`] not.
    #[must_use]
    pub fn test(&self, array: &ArrayRef) -> Option<BooleanArray> {
        macro_rules! of {
            ($($form:ident = $type:ty),*) => {
                match array.data_type() {
                    $(DataType::$form => {
                        let values: Vec<i64> = array.as_primitive::<$type>().values().iter().map(|value| i64::from(*value)).collect();
                        BooleanBuffer::new(Buffer::from_vec(self.among(&values)), 0, values.len())
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

    /// The word where a value between the bounds leaves bits, and these.
    fn place(&self, value: i64) -> (usize, u64) {
        if self.is_exact {
            let offset = value.wrapping_sub(self.min).cast_unsigned();
            return ((offset / 64) as usize, 1 << (offset % 64));
        }
        bloom_place(value, self.words.len() as u64)
    }

    fn bytes(&self) -> Vec<u8> {
        let numbers = [self.min.cast_unsigned(), self.max.cast_unsigned(), self.count, u64::from(self.is_exact)];
        numbers.iter().chain(&self.words).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// What [`KeySet::bytes`] gave; `None` for what it does not give.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next();
        let (min, max, count) = (next()?.cast_signed(), next()?.cast_signed(), next()?);
        let is_exact = next()? == 1;
        let set = Self { min, max, count, words: words.collect(), is_exact };
        let span = max.wrapping_sub(min).cast_unsigned();
        let needed = match (min <= max, is_exact) {
            (false, _) => 0,
            (true, true) => span / 64 + 1,
            (true, false) => 1,
        };
        (needed <= set.words.len() as u64).then_some(set)
    }
}

/// The word among so many where a value leaves three bits of a Bloom filter, and these.
#[inline]
fn bloom_place(value: i64, words: u64) -> (usize, u64) {
    // Fibonacci's multiplier, then the upper half for the word and three times six bits of the lower for bits of it.
    let hash = value.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = ((hash >> 32) * words) >> 32;
    (word as usize, 1 << (hash & 63) | 1 << ((hash >> 6) & 63) | 1 << ((hash >> 12) & 63))
}

/// A bit for each value, the lowest of what `test` gives.
#[inline]
fn each(values: &[i64], test: impl Fn(i64) -> u64) -> Vec<u64> {
    let word = |chunk: &[i64]| chunk.iter().enumerate().fold(0, |word, (bit, value)| word | test(*value) << bit);
    values.chunks(64).map(word).collect()
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys from {} to {}", self.count, self.min, self.max)
    }
}

impl Serialize for KeySet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.bytes())
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
                KeySet::read(bytes).ok_or_else(|| E::custom("its bytes are of no set of keys"))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}
