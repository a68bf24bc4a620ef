//! Sums of exact numbers, or of their squares, as 256-bit integers.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, LargeBinaryArray, LargeBinaryBuilder};
use arrow::datatypes::{DataType, i256};

use super::aggregate_state::{for_each_counted_row, gather};
use super::sums::{add_ints, numeric_overflow};
use crate::{Bitmap, Bounds, Column, ColumnData, Error, Result};

/// A 256-bit sum for each group.
#[derive(Debug)]
pub(super) struct Sums256 {
    sums_squares: bool,
    /// Part of each sum that fits in 128 bits: usually the entire sum.
    low: Vec<i128>,
    /// Remainder of each sum; empty until one does not fit `low`.
    high: Vec<i256>,
    /// Upper bound of the absolute values in `low`. If it cannot overflow by a batch, the batch is added without an
    /// overflow check of each value.
    low_max: u128,
}

/// Largest 128-bit sum.
const LOW_SUM_MAX: u128 = i128::MAX.unsigned_abs();

impl Sums256 {
    pub(super) fn new(sums_squares: bool) -> Self {
        Self { sums_squares, low: Vec::new(), high: Vec::new(), low_max: 0 }
    }

    pub(super) fn resize(&mut self, groups: usize) {
        self.low.resize(groups, 0);
        if !self.high.is_empty() {
            self.high.resize(groups, i256::ZERO);
        }
    }

    /// Adds values, or partial sums (a binary column).
    pub(super) fn add(&mut self, groups: &[u32], column: &Column, counts: Option<&Bitmap>) -> Result<()> {
        match (&column.data, self.sums_squares) {
            (ColumnData::Ints { values, bounds }, false) if self.reserve_low(groups.len(), magnitude(*bounds)) => {
                add_ints(&mut self.low, groups, values, *bounds, counts)
            }
            (ColumnData::Ints { values, .. }, false) => self.add_each(groups, counts, |row| i128::from(values[row])),
            (ColumnData::Ints { values, bounds }, true) => {
                let most = magnitude(*bounds).saturating_pow(2);
                let square = |value: i64| i128::from(value) * i128::from(value);
                if !self.reserve_low(groups.len(), most) {
                    return self.add_each(groups, counts, |row| square(values[row]));
                }
                let Ok(max) = i64::try_from(most) else {
                    for_each_counted_row(counts, groups.len(), |row| {
                        self.low[groups[row] as usize] += square(values[row])
                    });
                    return Ok(());
                };
                // The value at a NULL may be out of bounds, so that its square may wrap; it is not added.
                let squares: Vec<i64> = values.iter().map(|value| value.wrapping_mul(*value)).collect();
                add_ints(&mut self.low, groups, &squares, Bounds { min: 0, max: max.into() }, counts)
            }
            (ColumnData::WideInts(values), false) => self.add_each(groups, counts, |row| values[row]),
            (ColumnData::WideInts(values), true) => self.add_each_large(groups, counts, |row| square(values[row])),
            (ColumnData::Opaque(array), _) => {
                let others = from_binary(array)?;
                self.add_each_large(groups, counts, |row| others[row])
            }
            _ => Err(Error::Internal("the input of an exact sum is not an exact number")),
        }
    }

    /// Returns whether `values` more values of magnitude at most `most` keep every sum in `low` within 128 bits, and
    /// raises `low_max` for them.
    fn reserve_low(&mut self, values: usize, most: u128) -> bool {
        let more = (values as u128).checked_mul(most);
        let total = more.and_then(|more| self.low_max.checked_add(more)).filter(|total| *total <= LOW_SUM_MAX);
        self.low_max = total.unwrap_or(LOW_SUM_MAX);
        total.is_some()
    }

    fn add_each(&mut self, groups: &[u32], counts: Option<&Bitmap>, value: impl Fn(usize) -> i128) -> Result<()> {
        self.low_max = LOW_SUM_MAX;
        let mut added = Ok(());
        for_each_counted_row(counts, groups.len(), |row| {
            let (group, value) = (groups[row] as usize, value(row));
            match self.low[group].checked_add(value) {
                Some(total) => self.low[group] = total,
                None => {
                    if let Err(error) = self.add_large(group, i256::from_i128(value)) {
                        added = Err(error);
                    }
                }
            }
        });
        added
    }

    fn add_each_large(&mut self, groups: &[u32], counts: Option<&Bitmap>, value: impl Fn(usize) -> i256) -> Result<()> {
        self.low_max = LOW_SUM_MAX;
        let mut added = Ok(());
        for_each_counted_row(counts, groups.len(), |row| {
            let (group, value) = (groups[row] as usize, value(row));
            match value.to_i128().and_then(|value| self.low[group].checked_add(value)) {
                Some(total) => self.low[group] = total,
                None => {
                    if let Err(error) = self.add_large(group, value) {
                        added = Err(error);
                    }
                }
            }
        });
        added
    }

    /// Adds a value to a group's sum and moves the entire sum to `high`.
    fn add_large(&mut self, group: usize, value: i256) -> Result<()> {
        if self.high.is_empty() {
            self.high.resize(self.low.len(), i256::ZERO);
        }
        let low = i256::from_i128(std::mem::take(&mut self.low[group]));
        let total = self.high[group].checked_add(low).and_then(|sum| sum.checked_add(value));
        self.high[group] = total.ok_or_else(numeric_overflow)?;
        Ok(())
    }

    fn sum(&self, group: usize) -> Result<i256> {
        let low = i256::from_i128(self.low[group]);
        match self.high.get(group) {
            Some(high) => high.checked_add(low).ok_or_else(numeric_overflow),
            None => Ok(low),
        }
    }

    /// Adds sums of `other`; `pairs` are a group of `other` and the group here that it is added to.
    pub(super) fn merge(&mut self, other: &Self, pairs: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        if other.high.is_empty() && self.reserve_low(1, other.low_max) {
            pairs.for_each(|(from, to)| self.low[to] += other.low[from]);
            return Ok(());
        }
        self.low_max = LOW_SUM_MAX;
        for (from, to) in pairs {
            match self.low[to].checked_add(other.low[from]).filter(|_| other.high.is_empty()) {
                Some(total) => self.low[to] = total,
                None => self.add_large(to, other.sum(from)?)?,
            }
        }
        Ok(())
    }

    pub(super) fn gather(&self, groups: &[u32]) -> Self {
        let high = if self.high.is_empty() { Vec::new() } else { gather(&self.high, groups) };
        Self { sums_squares: self.sums_squares, low: gather(&self.low, groups), high, low_max: self.low_max }
    }

    pub(super) fn slice(&self, groups: Range<usize>) -> Self {
        let high = if self.high.is_empty() { Vec::new() } else { self.high[groups.clone()].to_vec() };
        Self { sums_squares: self.sums_squares, low: self.low[groups].to_vec(), high, low_max: self.low_max }
    }

    /// Encodes the sums, as [`to_binary`] does.
    pub(super) fn to_array(&self) -> Result<ArrayRef> {
        if self.high.is_empty() {
            return Ok(Arc::new(LargeBinaryArray::from_iter_values(self.low.iter().map(|sum| sum.to_le_bytes()))));
        }
        let sums = (0..self.low.len()).map(|group| self.sum(group)).collect::<Result<Vec<_>>>()?;
        Ok(to_binary(&sums))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let held = self.low.capacity() * size_of::<i128>() + self.high.capacity() * size_of::<i256>();
        // `array` adds an offset to each sum, which makes the result larger than this state while `high` is empty.
        held.max(self.low.len() * (size_of::<i128>() + size_of::<i64>()))
    }
}

/// Squares a number of at most 38 digits, which never overflows.
pub(crate) fn square(value: i128) -> i256 {
    match value.checked_mul(value) {
        Some(square) => i256::from_i128(square),
        None => i256::from_i128(value).wrapping_mul(i256::from_i128(value)),
    }
}

/// The largest magnitude within bounds.
fn magnitude(bounds: Bounds) -> u128 {
    bounds.min.unsigned_abs().max(bounds.max.unsigned_abs())
}

/// Encodes sums as binary values, little-endian: 16 bytes where a sum fits, else 32. Small values matter as the states
/// of many groups are cached.
pub(crate) fn to_binary(sums: &[i256]) -> ArrayRef {
    let mut encoded = LargeBinaryBuilder::with_capacity(sums.len(), sums.len() * size_of::<i128>());
    for sum in sums {
        match sum.to_i128() {
            Some(sum) => encoded.append_value(sum.to_le_bytes()),
            None => encoded.append_value(sum.to_le_bytes()),
        }
    }
    Arc::new(encoded.finish())
}

/// Decodes a column of sums.
///
/// # Errors
/// [`Error::Internal`] if the column is not one of encoded sums.
pub fn from_binary(array: &ArrayRef) -> Result<Vec<i256>> {
    let other = || Error::Internal("a column to be read as 256-bit sums has other values");
    if *array.data_type() != DataType::LargeBinary {
        return Err(other());
    }
    let array = array.as_binary::<i64>();
    let sum = |row: usize| {
        let bytes = array.value(row);
        if let Ok(bytes) = bytes.try_into() {
            return Ok(i256::from_i128(i128::from_le_bytes(bytes)));
        }
        bytes.try_into().map(i256::from_le_bytes).map_err(|_| other())
    };
    (0..array.len()).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_same_with_and_without_room_in_128_bits() {
        let largest = i64::MAX.into();
        let batches: [(Vec<i64>, Bounds); 4] = [
            (vec![3, -2, 0, 7, 7, 1], Bounds { min: -2, max: 7 }),
            (vec![i64::MAX, i64::MIN, 1, -1, i64::MAX, i64::MIN], Bounds::I64),
            (vec![i64::MAX; 6], Bounds { min: largest, max: largest }),
            (vec![3_037_000_499, -3_037_000_499, 0, 1, 2, 3], Bounds { min: -3_037_000_499, max: 3_037_000_499 }),
        ];
        let groups = [0, 1, 0, 2, 1, 2];
        for sums_squares in [false, true] {
            let mut sums = Sums256::new(sums_squares);
            sums.resize(3);
            let mut expected = [i256::ZERO; 3];
            let mut merged = Sums256::new(sums_squares);
            merged.resize(3);
            for round in 0..12 {
                let (values, bounds) = batches[round % 4].clone();
                for (group, value) in groups.iter().zip(&values) {
                    let value = i128::from(*value);
                    let value = if sums_squares { square(value) } else { i256::from_i128(value) };
                    expected[*group as usize] = expected[*group as usize].wrapping_add(value);
                }
                let column = Column::new(ColumnData::Ints { values: Arc::new(values), bounds });
                sums.add(&groups, &column, None).expect("256 bits hold them");
                let mut other = Sums256::new(sums_squares);
                other.resize(3);
                other.add(&groups, &column, None).expect("256 bits hold them");
                merged.merge(&other, (0..3).map(|group| (group, group))).expect("256 bits hold them");
                let all =
                    |sums: &Sums256| from_binary(&sums.to_array().expect("256 bits hold them")).expect("they are sums");
                assert_eq!(
                    (all(&sums), all(&merged)),
                    (expected.to_vec(), expected.to_vec()),
                    "{sums_squares} {round}"
                );
            }
        }
    }

    #[test]
    fn squares_of_the_greatest_numbers_are_added_until_nothing_holds_them() {
        let most = 10_i128.pow(38) - 1;
        let values = Column::new(ColumnData::WideInts(Arc::new(vec![most, -most, 3])));
        let mut sums = Sums256::new(true);
        sums.resize(2);
        sums.add(&[0, 0, 1], &values, None).expect("256 bits hold five of them");
        let square = i256::from_i128(most).wrapping_mul(i256::from_i128(most));
        let all = |sums: &Sums256| from_binary(&sums.to_array().expect("256 bits hold them")).expect("they are sums");
        assert_eq!(all(&sums), [square.wrapping_add(square), i256::from_i128(9)]);

        let parts = Column::new(ColumnData::Opaque(sums.to_array().expect("256 bits hold them")));
        let mut whole = Sums256::new(true);
        whole.resize(1);
        whole.add(&[0, 0], &parts, None).expect("sums are added, not squared again");
        assert_eq!(all(&whole), [square.wrapping_add(square).wrapping_add(i256::from_i128(9))]);
        let mut small = Sums256::new(false);
        small.resize(1);
        let greatest = Column::new(ColumnData::WideInts(Arc::new(vec![i128::MAX, 1, -5])));
        small.add(&[0; 3], &greatest, None).expect("a sum beyond 128 bits fits 256 bits");
        whole.merge(&small, std::iter::once((0, 0))).expect("256 bits hold it");
        small.merge(&whole, std::iter::once((0, 0))).expect("256 bits hold it");
        let beyond = i256::from_i128(i128::MAX).wrapping_sub(i256::from_i128(4));
        let two = beyond.wrapping_add(beyond);
        assert_eq!(all(&small), [two.wrapping_add(square).wrapping_add(square).wrapping_add(i256::from_i128(9))]);
        let four = || Column::new(ColumnData::WideInts(Arc::new(vec![most; 4])));
        let refused = whole.add(&[0; 4], &four(), None).expect_err("nothing holds six");
        assert_eq!(refused.to_string(), numeric_overflow().to_string());
        assert!(from_binary(&(Arc::new(LargeBinaryArray::from(vec![b"x".as_slice()])) as ArrayRef)).is_err());
    }
}
