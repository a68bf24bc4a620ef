//! Sums of exact numbers, or of their squares, in 256 bits.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use arrow::datatypes::{DataType, i256};

use super::state::each;
use super::state::picked;
use super::totals::beyond;
use crate::{Bits, Column, Data, Error, Result};

/// A sum of each group.
#[derive(Debug)]
pub(super) struct WideSums {
    is_of_squares: bool,
    sums: Vec<i256>,
}

/// Bytes of a sum.
const BYTES: usize = 32;

impl WideSums {
    pub(super) fn new(is_of_squares: bool) -> Self {
        Self { is_of_squares, sums: Vec::new() }
    }

    pub(super) fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, i256::ZERO);
    }

    /// Adds values, or sums of them.
    pub(super) fn add(&mut self, groups: &[u32], column: &Column, counts: Option<&Bits>) -> Result<()> {
        let is_of_squares = self.is_of_squares;
        let value = |value: i128| if is_of_squares { square(value) } else { i256::from_i128(value) };
        match &column.data {
            Data::Ints { values, .. } => self.add_each(groups, counts, |row| value(values[row].into())),
            Data::Wide(values) => self.add_each(groups, counts, |row| value(values[row])),
            Data::Opaque(array) => {
                let others = sums_of(array)?;
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
        if is_beyond { Err(beyond()) } else { Ok(()) }
    }

    /// Adds another's groups, each to one of these.
    pub(super) fn merge(&mut self, other: &Self, pairs: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        for (from, to) in pairs {
            self.sums[to] = self.sums[to].checked_add(other.sums[from]).ok_or_else(beyond)?;
        }
        Ok(())
    }

    pub(super) fn picked(&self, groups: &[u32]) -> Self {
        Self { sums: picked(&self.sums, groups), ..*self }
    }

    pub(super) fn part(&self, groups: Range<usize>) -> Self {
        Self { sums: self.sums[groups].to_vec(), ..*self }
    }

    /// A binary value of each.
    pub(super) fn array(&self) -> ArrayRef {
        array_of(&self.sums)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<i256>()
    }
}

/// The square of a number of 38 digits has 76, which 256 bits hold.
pub(crate) fn square(value: i128) -> i256 {
    match value.checked_mul(value) {
        Some(square) => i256::from_i128(square),
        None => i256::from_i128(value).wrapping_mul(i256::from_i128(value)),
    }
}

/// A binary value of each sum.
pub(crate) fn array_of(sums: &[i256]) -> ArrayRef {
    Arc::new(BinaryArray::from_iter_values(sums.iter().map(|sum| sum.to_le_bytes())))
}

/// The sums of a column of them.
///
/// # Errors
/// Where it is one of something else.
pub fn sums_of(array: &ArrayRef) -> Result<Vec<i256>> {
    let other = || Error::Form("sums of 256 bits");
    if *array.data_type() != DataType::Binary {
        return Err(other());
    }
    let array = array.as_binary::<i32>();
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
        let mut sums = WideSums::new(true);
        sums.resize(2);
        sums.add(&[0, 0, 1], &values, None).expect("256 bits hold five of them");
        let square = i256::from_i128(most).wrapping_mul(i256::from_i128(most));
        assert_eq!(sums.sums, [square.wrapping_add(square), i256::from_i128(9)]);

        let parts = Column::new(Data::Opaque(sums.array()));
        let mut whole = WideSums::new(true);
        whole.resize(1);
        whole.add(&[0, 0], &parts, None).expect("sums are added, not squared again");
        assert_eq!(whole.sums, [square.wrapping_add(square).wrapping_add(i256::from_i128(9))]);
        let four = || Column::new(Data::Wide(Arc::new(vec![most; 4])));
        let refused = whole.add(&[0; 4], &four(), None).expect_err("nothing holds six");
        assert_eq!(refused.to_string(), beyond().to_string());
        assert!(sums_of(&(Arc::new(BinaryArray::from(vec![b"x".as_slice()])) as ArrayRef)).is_err());
    }
}
