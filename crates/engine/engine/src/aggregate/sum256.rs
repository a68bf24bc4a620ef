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
    sums: Vec<i256>,
}

/// Bytes of a sum.
const BYTES: usize = 32;

impl Sums256 {
    pub(super) fn new(of_squares: bool) -> Self {
        Self { of_squares, sums: Vec::new() }
    }

    pub(super) fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, i256::ZERO);
    }

    /// Adds values, or partial sums (a binary column).
    pub(super) fn add(&mut self, groups: &[u32], column: &Column, counts: Option<&Bits>) -> Result<()> {
        let of_squares = self.of_squares;
        let value = |value: i128| if of_squares { square(value) } else { i256::from_i128(value) };
        match &column.data {
            Data::Ints { values, .. } => self.add_each(groups, counts, |row| value(values[row].into())),
            Data::Wide(values) => self.add_each(groups, counts, |row| value(values[row])),
            Data::Opaque(array) => {
                let others = from_binary(array)?;
                self.add_each(groups, counts, |row| others[row])
            }
            _ => Err(Error::Form("a sum of what is no exact number")),
        }
    }

    fn add_each(&mut self, groups: &[u32], counts: Option<&Bits>, value: impl Fn(usize) -> i256) -> Result<()> {
        let mut is_beyond = false;
        each(counts, groups.len(), |row| {
            let sum = &mut self.sums[groups[row] as usize];
            match sum.checked_add(value(row)) {
                Some(total) => *sum = total,
                None => is_beyond = true,
            }
        });
        if is_beyond { Err(numeric_overflow()) } else { Ok(()) }
    }

    /// Adds another's groups, each to one of these.
    pub(super) fn merge(&mut self, other: &Self, pairs: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        for (from, to) in pairs {
            self.sums[to] = self.sums[to].checked_add(other.sums[from]).ok_or_else(numeric_overflow)?;
        }
        Ok(())
    }

    pub(super) fn picked(&self, groups: &[u32]) -> Self {
        Self { sums: picked(&self.sums, groups), ..*self }
    }

    pub(super) fn part(&self, groups: Range<usize>) -> Self {
        Self { sums: self.sums[groups].to_vec(), ..*self }
    }

    /// Encodes the sums, 32 bytes each.
    pub(super) fn array(&self) -> ArrayRef {
        to_binary(&self.sums)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<i256>()
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
        assert_eq!(sums.sums, [square.wrapping_add(square), i256::from_i128(9)]);

        let parts = Column::new(Data::Opaque(sums.array()));
        let mut whole = Sums256::new(true);
        whole.resize(1);
        whole.add(&[0, 0], &parts, None).expect("sums are added, not squared again");
        assert_eq!(whole.sums, [square.wrapping_add(square).wrapping_add(i256::from_i128(9))]);
        let four = || Column::new(Data::Wide(Arc::new(vec![most; 4])));
        let refused = whole.add(&[0; 4], &four(), None).expect_err("nothing holds six");
        assert_eq!(refused.to_string(), numeric_overflow().to_string());
        assert!(from_binary(&(Arc::new(LargeBinaryArray::from(vec![b"x".as_slice()])) as ArrayRef)).is_err());
    }
}
