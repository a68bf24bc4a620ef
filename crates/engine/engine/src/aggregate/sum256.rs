//! Sums of exact numbers, or of their squares, as 256-bit integers.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, LargeBinaryArray};
use arrow::datatypes::{DataType, i256};

use super::state::{each, picked};
use super::totals::numeric_overflow;
use crate::{Bits, Column, Data, Error, Result};

/// A 256-bit sum for each group.
#[derive(Debug)]
pub(super) struct Sums256 {
    of_squares: bool,
    /// Each sum as far as it fits into 128 bits: most often the whole sum.
    low: Vec<i128>,
    /// The rest of each sum; empty until one sum has a rest.
    high: Vec<i256>,
}

/// Bytes of a sum.
const BYTES: usize = 32;

impl Sums256 {
    pub(super) fn new(of_squares: bool) -> Self {
        Self { of_squares, low: Vec::new(), high: Vec::new() }
    }

    pub(super) fn resize(&mut self, groups: usize) {
        self.low.resize(groups, 0);
        if !self.high.is_empty() {
            self.high.resize(groups, i256::ZERO);
        }
    }

    /// Adds values, or partial sums (a binary column).
    pub(super) fn add(&mut self, groups: &[u32], column: &Column, counts: Option<&Bits>) -> Result<()> {
        match (&column.data, self.of_squares) {
            (Data::Ints { values, .. }, false) => self.add_each(groups, counts, |row| i128::from(values[row])),
            (Data::Ints { values, .. }, true) => {
                self.add_each(groups, counts, |row| i128::from(values[row]) * i128::from(values[row]))
            }
            (Data::Wide(values), false) => self.add_each(groups, counts, |row| values[row]),
            (Data::Wide(values), true) => self.add_each_large(groups, counts, |row| square(values[row])),
            (Data::Opaque(array), _) => {
                let others = from_binary(array)?;
                self.add_each_large(groups, counts, |row| others[row])
            }
            _ => Err(Error::Form("a sum of what is no exact number")),
        }
    }

    fn add_each(&mut self, groups: &[u32], counts: Option<&Bits>, value: impl Fn(usize) -> i128) -> Result<()> {
        let mut added = Ok(());
        each(counts, groups.len(), |row| {
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

    fn add_each_large(&mut self, groups: &[u32], counts: Option<&Bits>, value: impl Fn(usize) -> i256) -> Result<()> {
        let mut added = Ok(());
        each(counts, groups.len(), |row| {
            if let Err(error) = self.add_large(groups[row] as usize, value(row)) {
                added = Err(error);
            }
        });
        added
    }

    /// Adds to a group's sum, the whole of which is in the upper part afterwards.
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

    /// Adds another's groups, each to one of these.
    pub(super) fn merge(&mut self, other: &Self, pairs: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        for (from, to) in pairs {
            match self.low[to].checked_add(other.low[from]).filter(|_| other.high.is_empty()) {
                Some(total) => self.low[to] = total,
                None => self.add_large(to, other.sum(from)?)?,
            }
        }
        Ok(())
    }

    pub(super) fn picked(&self, groups: &[u32]) -> Self {
        let high = if self.high.is_empty() { Vec::new() } else { picked(&self.high, groups) };
        Self { of_squares: self.of_squares, low: picked(&self.low, groups), high }
    }

    pub(super) fn part(&self, groups: Range<usize>) -> Self {
        let high = if self.high.is_empty() { Vec::new() } else { self.high[groups.clone()].to_vec() };
        Self { of_squares: self.of_squares, low: self.low[groups].to_vec(), high }
    }

    /// Encodes the sums, 32 bytes each.
    pub(super) fn array(&self) -> Result<ArrayRef> {
        let sums = (0..self.low.len()).map(|group| self.sum(group)).collect::<Result<Vec<_>>>()?;
        Ok(to_binary(&sums))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let held = self.low.capacity() * size_of::<i128>() + self.high.capacity() * size_of::<i256>();
        // `array` encodes 32 bytes for each sum, more than are held while `high` is empty.
        held.max(self.low.len() * BYTES)
    }
}

/// Squares a number of at most 38 digits, which never overflows.
pub(crate) fn square(value: i128) -> i256 {
    match value.checked_mul(value) {
        Some(square) => i256::from_i128(square),
        None => i256::from_i128(value).wrapping_mul(i256::from_i128(value)),
    }
}

/// Encodes sums as binary values of 32 bytes, little-endian.
pub(crate) fn to_binary(sums: &[i256]) -> ArrayRef {
    Arc::new(LargeBinaryArray::from_iter_values(sums.iter().map(|sum| sum.to_le_bytes())))
}

/// Decodes a column of sums.
///
/// # Errors
/// `Error::Form` where it is no such column.
pub fn from_binary(array: &ArrayRef) -> Result<Vec<i256>> {
    let other = || Error::Form("sums of 256 bits");
    if *array.data_type() != DataType::LargeBinary {
        return Err(other());
    }
    let array = array.as_binary::<i64>();
    let sum = |row: usize| {
        let bytes: [u8; BYTES] = array.value(row).try_into().map_err(|_| other())?;
        Ok(i256::from_le_bytes(bytes))
    };
    (0..array.len()).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_the_greatest_numbers_are_added_until_nothing_holds_them() {
        let most = 10_i128.pow(38) - 1;
        let values = Column::new(Data::Wide(Arc::new(vec![most, -most, 3])));
        let mut sums = Sums256::new(true);
        sums.resize(2);
        sums.add(&[0, 0, 1], &values, None).expect("256 bits hold five of them");
        let square = i256::from_i128(most).wrapping_mul(i256::from_i128(most));
        let all = |sums: &Sums256| from_binary(&sums.array().expect("256 bits hold them")).expect("they are sums");
        assert_eq!(all(&sums), [square.wrapping_add(square), i256::from_i128(9)]);

        let parts = Column::new(Data::Opaque(sums.array().expect("256 bits hold them")));
        let mut whole = Sums256::new(true);
        whole.resize(1);
        whole.add(&[0, 0], &parts, None).expect("sums are added, not squared again");
        assert_eq!(all(&whole), [square.wrapping_add(square).wrapping_add(i256::from_i128(9))]);
        let mut small = Sums256::new(false);
        small.resize(1);
        let greatest = Column::new(Data::Wide(Arc::new(vec![i128::MAX, 1, -5])));
        small.add(&[0; 3], &greatest, None).expect("the rest of it has room");
        whole.merge(&small, std::iter::once((0, 0))).expect("256 bits hold it");
        small.merge(&whole, std::iter::once((0, 0))).expect("256 bits hold it");
        let beyond = i256::from_i128(i128::MAX).wrapping_sub(i256::from_i128(4));
        let two = beyond.wrapping_add(beyond);
        assert_eq!(all(&small), [two.wrapping_add(square).wrapping_add(square).wrapping_add(i256::from_i128(9))]);
        let four = || Column::new(Data::Wide(Arc::new(vec![most; 4])));
        let refused = whole.add(&[0; 4], &four(), None).expect_err("nothing holds six");
        assert_eq!(refused.to_string(), numeric_overflow().to_string());
        assert!(from_binary(&(Arc::new(LargeBinaryArray::from(vec![b"x".as_slice()])) as ArrayRef)).is_err());
    }
}
