//! Runtime filter on an integer join key, applied by scans of the probe side.

use std::sync::Arc;

use super::bloom::Bloom;
use super::ranked;
use crate::{Bits, Column, Data};

/// Maximum range of values, in bits, for which a bitmap is built.
const BITS: u64 = 1 << 27;

/// Maximum ratio of a bitmap's bits to the number of build rows, beyond the 8 MB (`BITS_FEW` bits) that are always
/// allowed.
const BITS_SHARE: u64 = 512;
const BITS_FEW: u64 = 1 << 26;

/// Minimum ratio of probe rows to build rows for which a Bloom filter pays off.
const FEW_SHARE: u64 = 4;

/// Runtime filter with the values of one integer key of the build side, for scans of the probe side to drop rows that
/// cannot find a match.
#[derive(Debug)]
pub struct KeyFilter {
    /// Least and greatest value.
    bounds: (i64, i64),
    /// Bitmap of the values, starting at the lower bound.
    bits: Option<Arc<Vec<u64>>>,
    /// Bloom filter, for values whose range is too large for a bitmap.
    bloom: Option<Bloom>,
    /// Number of build rows with a value.
    rows: u64,
    /// Whether every value within the bounds exists.
    is_range: bool,
    /// Whether NULL keys pass the filter.
    keeps_nulls: bool,
}

impl KeyFilter {
    /// Builds the filter from the values of rows for which `is_there` is true, with a bitmap or Bloom filter of at
    /// most `most` bits. `known` is an existing bitmap of the values from the least one on. Returns `None` for keys
    /// that are not integers of 64 bits.
    pub(super) fn new(
        column: &Column,
        is_there: impl Fn(usize) -> bool,
        known: Option<&Arc<Vec<u64>>>,
        keeps_nulls: bool,
        most: u64,
    ) -> Option<Self> {
        match &column.data {
            Data::Ints { values, .. } => Some(Self::of(column, is_there, known, keeps_nulls, most, |row| values[row])),
            Data::Wide(values) => {
                let is_narrow = |row: usize| !column.is_valid(row) || i64::try_from(values[row]).is_ok();
                let are_narrow = (0..values.len()).all(is_narrow);
                are_narrow.then(|| Self::of(column, is_there, known, keeps_nulls, most, |row| values[row] as i64))
            }
            _ => None,
        }
    }

    fn of(
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
        let none = Self { bounds, bits: None, bloom: None, rows: count, is_range: count > 0 && span == 0, keeps_nulls };
        if count == 0 || none.is_range {
            return none;
        }
        if span >= most.min(BITS).min((count * BITS_SHARE).max(BITS_FEW)) {
            let bloom = Bloom::with_room(count, most).map(|mut bloom| {
                there().for_each(|row| bloom.add(value(row)));
                bloom
            });
            return Self { bloom, ..none };
        }
        let bits = known.cloned().unwrap_or_else(|| {
            let mut bits = ranked::none(span + 1);
            there().for_each(|row| ranked::set(&mut bits, value(row).wrapping_sub(bounds.0).cast_unsigned()));
            Arc::new(bits)
        });
        let set: u64 = bits.iter().map(|word| u64::from(word.count_ones())).sum();
        Self { is_range: set == span + 1, bits: Some(bits), ..none }
    }

    /// Returns the least and the greatest value; the greatest is less than the least if there are no values.
    #[must_use]
    pub fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    /// Returns whether every value within the bounds exists.
    #[must_use]
    pub fn is_exact_range(&self) -> bool {
        self.is_range
    }

    /// Returns whether testing `rows` rows by more than the bounds pays off: testing a Bloom filter costs about as
    /// much as the hash lookup it avoids.
    #[must_use]
    pub fn is_worth(&self, rows: u64) -> bool {
        self.bloom.is_none() || self.rows.saturating_mul(FEW_SHARE) <= rows
    }

    /// Returns whether NULL keys must pass because they may match or decide about the result.
    #[must_use]
    pub fn keeps_nulls(&self) -> bool {
        self.keeps_nulls
    }

    /// Returns the rows that may find a match.
    #[must_use]
    pub fn keep(&self, values: &[i64], validity: Option<&Bits>) -> Bits {
        let (least, greatest) = self.bounds;
        let kept = match (&self.bits, &self.bloom) {
            (Some(bits), _) if !self.is_range => {
                let bits = bits.as_slice();
                Bits::of(values.len(), |row| ranked::has(bits, values[row].wrapping_sub(least).cast_unsigned()))
            }
            (None, Some(bloom)) => Bits::of_values(values, |value| bloom.may_have(value)),
            _ => Bits::of(values.len(), |row| (least <= values[row]) & (values[row] <= greatest)),
        };
        match validity {
            None => kept,
            Some(valid) if self.keeps_nulls => kept.or(&valid.not()),
            Some(valid) => kept.and(valid),
        }
    }

    /// Returns the allocated bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let bits = self.bits.as_ref().map_or(0, |bits| bits.capacity() * 8);
        bits + self.bloom.as_ref().map_or(0, Bloom::memory_bytes)
    }
}
