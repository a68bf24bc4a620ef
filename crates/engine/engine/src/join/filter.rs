//! What a probe row's key must fulfil to find anything.

use std::sync::Arc;

use super::bloom::Bloom;
use super::ranked;
use crate::{Bits, Column, Data};

/// The most values that a bitmap is made for.
const BITS: u64 = 1 << 27;

/// The most values for each build row that a bitmap is made for, beyond those that are always few: eight megabytes of bits.
const BITS_SHARE: u64 = 512;
const BITS_FEW: u64 = 1 << 26;

/// Values far apart are tested of no fewer than so many rows for each of the build side.
const FEW_SHARE: u64 = 4;

/// The values of one integer key of a build side: for a scan of the probe side to leave rows out that find nothing.
#[derive(Debug)]
pub struct KeyFilter {
    bounds: (i64, i64),
    /// A bit for each value from the lower bound on.
    bits: Option<Arc<Vec<u64>>>,
    /// Of values that are too far apart for that.
    bloom: Option<Bloom>,
    /// How many rows have a value.
    rows: u64,
    is_range: bool,
    keeps_nulls: bool,
}

impl KeyFilter {
    /// Of the values whose rows have words; of at most so many values that there may be, bits are made. `known` are bits of the values from the least on, if there are such already.
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

    /// The least and the greatest value; the greatest is less where there are none.
    #[must_use]
    pub fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    /// Whether every value within the bounds is there.
    #[must_use]
    pub fn is_exact_range(&self) -> bool {
        self.is_range
    }

    /// Whether it is worth testing so many rows by more than the bounds: a test of values far apart costs about as much as looking them up.
    #[must_use]
    pub fn is_worth(&self, rows: u64) -> bool {
        self.bloom.is_none() || self.rows.saturating_mul(FEW_SHARE) <= rows
    }

    /// Whether a NULL may find something.
    #[must_use]
    pub fn keeps_nulls(&self) -> bool {
        self.keeps_nulls
    }

    /// The rows that may find something.
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

    /// What it takes in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let bits = self.bits.as_ref().map_or(0, |bits| bits.capacity() * 8);
        bits + self.bloom.as_ref().map_or(0, Bloom::memory_bytes)
    }
}
