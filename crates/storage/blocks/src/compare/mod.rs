//! Predicates on encoded blocks: a condition removes the rows that do not match from a [`RowSet`].
//!
//! The bounds of the block and then of each vector are tested first. Only vectors that they do not decide are unpacked,
//! into the narrowest lanes rather than into values. NULL matches only `IsNull`.
//!
//! In reading order:
//! - `condition_ranges.rs`: conditions to ranges of keys
//! - `prune.rs`: pruning by the header alone
//! - `key_filter.rs`: ranges of keys on each encoding
//! - `range_filter.rs`, `range_lookup_table.rs`: ranges of keys on packed vectors
//! - `string_filter.rs`: conditions on strings

mod condition_ranges;
mod key_filter;
mod prune;
mod range_filter;
mod range_lookup_table;
mod string_filter;

use crate::compare::condition_ranges::{float_ranges, integer_ranges};
use crate::decode::LanesBuffer;
use crate::{Block, Encoding, KeyRanges, Result, RowSet};

/// Comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

impl Comparison {
    /// All comparison operators.
    pub const ALL: [Self; 6] =
        [Self::Less, Self::LessOrEqual, Self::Equal, Self::NotEqual, Self::GreaterOrEqual, Self::Greater];

    /// Whether the operator is true for a value whose order relative to the constant is `ordering`.
    #[inline]
    pub fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Greater => ordering.is_gt(),
        }
    }
}

/// A condition on one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition<T> {
    /// Comparison with a constant.
    Compare(Comparison, T),
    /// Inclusive range.
    Between(T, T),
    /// Equality with one of several constants.
    In(Vec<T>),
    /// `IS NULL`.
    IsNull,
    /// `IS NOT NULL`.
    IsNotNull,
}

impl Condition<i128> {
    /// Returns the 64-bit integers for which the condition is true; none for `IsNull`.
    pub fn ranges(&self) -> KeyRanges {
        integer_ranges(self, 0)
    }
}

impl Block {
    /// Removes the rows of a block of integers for which a condition is not true.
    pub fn filter_integers(&self, condition: &Condition<i128>, rows: &mut RowSet) -> Result<()> {
        self.expect_kind(self.header().kind.is_integer())?;
        match condition {
            Condition::IsNull => self.filter_nulls(true, rows),
            Condition::IsNotNull => self.filter_nulls(false, rows),
            _ if self.header().encoding == Encoding::PlainWide => self.filter_int128(condition, rows),
            _ => self.filter_keys(&integer_ranges(condition, self.header().offset), rows),
        }
        Ok(())
    }

    /// Removes the rows of a block of floats for which a condition is not true, in PostgreSQL's order: -0 equals 0, NaN
    /// equals itself and is greater than all other numbers.
    pub fn filter_floats(&self, condition: &Condition<f64>, rows: &mut RowSet) -> Result<()> {
        self.expect_kind(self.header().kind.is_float())?;
        match condition {
            Condition::IsNull => self.filter_nulls(true, rows),
            Condition::IsNotNull => self.filter_nulls(false, rows),
            _ => self.filter_keys(&float_ranges(condition, self.header().kind), rows),
        }
        Ok(())
    }

    /// Removes the rows of a block of dictionary indices that lie in none of the ranges.
    pub fn filter_codes(&self, codes: &KeyRanges, rows: &mut RowSet) -> Result<()> {
        self.expect_kind(self.header().kind == crate::ValueKind::Code)?;
        self.filter_keys(codes, rows);
        Ok(())
    }

    /// Removes the rows that are not NULL if `is_null` is true, else those that are NULL; for blocks of any type.
    pub fn filter_nulls(&self, is_null: bool, rows: &mut RowSet) {
        debug_assert_eq!(rows.rows(), self.header().rows, "the row set must be over the block's rows");
        let mut buffer = LanesBuffer::new();
        for vector in 0..self.header().vector_count() {
            if rows.is_empty_in_vector(vector) {
                continue;
            }
            let mut validity = self.validity(vector, &mut buffer);
            if is_null {
                validity.iter_mut().for_each(|word| *word = !*word);
            }
            rows.retain_in_vector(vector, &validity);
        }
    }
}

#[cfg(test)]
mod tests;
