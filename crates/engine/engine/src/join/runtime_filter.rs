//! Runtime filter on an integer join key, applied by scans of the probe side.

use std::sync::Arc;

use super::bloom::BloomFilter;
use super::rank_bitmap;
use crate::{Bitmap, Column, ColumnData};

/// Maximum range of values, in bits, for which a bitmap is built.
const BITMAP_BITS_MAX: u64 = 1 << 27;

/// Maximum ratio of a bitmap's bits to the number of build rows, beyond the 8 MB (`ALWAYS_ALLOWED_BITS` bits) that are
/// always allowed.
const BITS_PER_ROW_MAX: u64 = 512;
const ALWAYS_ALLOWED_BITS: u64 = 1 << 26;

/// Minimum ratio of probe rows to build rows for which a Bloom filter pays off.
const BLOOM_PROBE_RATIO_MIN: u64 = 4;

/// Runtime filter with the values of one integer key of the build side, for scans of the probe side to drop rows that
/// cannot find a match.
#[derive(Debug)]
pub struct KeyFilter {
    /// Least and greatest value.
    bounds: (i64, i64),
    /// Bitmap of the values, starting at the lower bound.
    bits: Option<Arc<Vec<u64>>>,
    /// Bloom filter, for values whose range is too large for a bitmap.
    bloom: Option<BloomFilter>,
    /// Number of build rows with a value.
    rows: u64,
    /// Whether every value within the bounds exists.
    is_exact_range: bool,
    /// Whether NULL keys pass the filter.
    passes_nulls: bool,
}

impl KeyFilter {
    /// Builds the filter from the values of rows for which `is_there` is true, with a bitmap or Bloom filter of at
    /// most `most` bits. `known` is an existing bitmap of the values from the least one on. Returns `None` for keys
    /// that are not integers of 64 bits.
    pub(super) fn new(
        column: &Column,
        has_key: impl Fn(usize) -> bool,
        existing_bitmap: Option<&Arc<Vec<u64>>>,
        keeps_nulls: bool,
        max_bits: u64,
    ) -> Option<Self> {
        match &column.data {
            ColumnData::Ints { values, .. } => {
                Some(Self::from_values(column, has_key, existing_bitmap, keeps_nulls, max_bits, |row| values[row]))
            }
            ColumnData::WideInts(values) => {
                let is_narrow = |row: usize| !column.is_valid(row) || i64::try_from(values[row]).is_ok();
                let are_narrow = (0..values.len()).all(is_narrow);
                are_narrow.then(|| {
                    Self::from_values(column, has_key, existing_bitmap, keeps_nulls, max_bits, |row| values[row] as i64)
                })
            }
            _ => None,
        }
    }

    fn from_values(
        column: &Column,
        is_there: impl Fn(usize) -> bool,
        known: Option<&Arc<Vec<u64>>>,
        keeps_nulls: bool,
        most: u64,
        value: impl Fn(usize) -> i64,
    ) -> Self {
        let there = || (0..column.rows()).filter(|row| is_there(*row) && column.is_valid(*row));
        let (mut bounds, mut count) = ((i64::MAX, i64::MIN), 0);
        for row in there() {
            bounds = (bounds.0.min(value(row)), bounds.1.max(value(row)));
            count += 1;
        }
        let span = bounds.1.wrapping_sub(bounds.0).cast_unsigned();
        let none = Self {
            bounds,
            bits: None,
            bloom: None,
            rows: count,
            is_exact_range: count > 0 && span == 0,
            passes_nulls: keeps_nulls,
        };
        if count == 0 || none.is_exact_range {
            return none;
        }
        if span >= most.min(BITMAP_BITS_MAX).min((count * BITS_PER_ROW_MAX).max(ALWAYS_ALLOWED_BITS)) {
            let bloom = BloomFilter::try_with_capacity(count, most).map(|mut bloom| {
                there().for_each(|row| bloom.insert(value(row)));
                bloom
            });
            return Self { bloom, ..none };
        }
        let bits = known.cloned().unwrap_or_else(|| {
            let mut bits = rank_bitmap::empty_bitmap(span + 1);
            there().for_each(|row| rank_bitmap::set(&mut bits, value(row).wrapping_sub(bounds.0).cast_unsigned()));
            Arc::new(bits)
        });
        let set: u64 = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Self { is_exact_range: set == span + 1, bits: Some(bits), ..none }
    }

    /// Returns the least and the greatest value; the greatest is less than the least if there are no values.
    #[must_use]
    pub fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    /// Returns whether every value within the bounds exists.
    #[must_use]
    pub fn is_exact_range(&self) -> bool {
        self.is_exact_range
    }

    /// Returns whether testing `rows` rows by more than the bounds pays off: testing a Bloom filter costs about as
    /// much as the hash lookup it avoids.
    #[must_use]
    pub fn is_worthwhile(&self, rows: u64) -> bool {
        self.bloom.is_none() || self.rows.saturating_mul(BLOOM_PROBE_RATIO_MIN) <= rows
    }

    /// Returns whether NULL keys must pass because they may match or decide about the result.
    #[must_use]
    pub fn passes_nulls(&self) -> bool {
        self.passes_nulls
    }

    /// Returns the rows that may find a match.
    #[must_use]
    pub fn matching_rows(&self, values: &[i64], validity: Option<&Bitmap>) -> Bitmap {
        let (least, greatest) = self.bounds;
        let kept = match (&self.bits, &self.bloom) {
            (Some(bits), _) if !self.is_exact_range => {
                let bits = bits.as_slice();
                Bitmap::from_fn(values.len(), |row| {
                    rank_bitmap::contains(bits, values[row].wrapping_sub(least).cast_unsigned())
                })
            }
            (None, Some(bloom)) => Bitmap::from_values(values, |value| bloom.may_contain(value)),
            _ => Bitmap::from_fn(values.len(), |row| (least <= values[row]) & (values[row] <= greatest)),
        };
        match validity {
            None => kept,
            Some(valid) if self.passes_nulls => kept.or(&valid.not()),
            Some(valid) => kept.and(valid),
        }
    }

    /// Returns the allocated bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let bits = self.bits.as_ref().map_or(0, |bits| bits.capacity() * 8);
        bits + self.bloom.as_ref().map_or(0, BloomFilter::memory_bytes)
    }
}
