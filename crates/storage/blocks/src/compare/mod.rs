//! Predicates on blocks as they lie: a condition takes from a set the rows that it is not true of.
//!
//! A condition on numbers becomes ranges of keys (`lower.rs`). The block's bounds are tried first, then each vector's; only what they
//! leave open is unpacked, into the narrowest lanes and not into values (`keys.rs`). NULL passes nothing but `IsNull`.

mod keys;
mod lower;
mod search;
mod table;
mod text;
mod zones;

use crate::compare::lower::{float_ranges, integer_ranges};
use crate::decode::LanesBuffer;
use crate::{Block, Ranges, Result, RowSet, Scheme};

/// How a value is compared with a constant.
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
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Less, Self::LessOrEqual, Self::Equal, Self::NotEqual, Self::GreaterOrEqual, Self::Greater];

    /// Whether it is true of a value that compares so with the constant.
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
    /// Compared with a constant.
    Compare(Comparison, T),
    /// From the first to the second, both included.
    Between(T, T),
    /// Equal to one of them.
    In(Vec<T>),
    /// `IS NULL`.
    IsNull,
    /// `IS NOT NULL`.
    IsNotNull,
}

impl Condition<i128> {
    /// The 64-bit integers of which it is true; none for `IsNull`.
    pub fn ranges(&self) -> Ranges {
        integer_ranges(self, 0)
    }
}

impl Block {
    /// Keeps the rows of a block of integers of which a condition is true.
    pub fn filter_integers(&self, condition: &Condition<i128>, rows: &mut RowSet) -> Result<()> {
        self.expect_kind(self.head().kind.is_integer())?;
        match condition {
            Condition::IsNull => self.filter_nulls(true, rows),
            Condition::IsNotNull => self.filter_nulls(false, rows),
            _ if self.head().scheme == Scheme::PlainWide => self.filter_wide(condition, rows),
            _ => self.filter_keys(&integer_ranges(condition, self.head().offset), rows),
        }
        Ok(())
    }

    /// Keeps the rows of a block of floating-point numbers of which a condition is true, as PostgreSQL orders them: -0 is 0, NaN is
    /// equal to itself and greater than all others.
    pub fn filter_floats(&self, condition: &Condition<f64>, rows: &mut RowSet) -> Result<()> {
        self.expect_kind(self.head().kind.is_float())?;
        match condition {
            Condition::IsNull => self.filter_nulls(true, rows),
            Condition::IsNotNull => self.filter_nulls(false, rows),
            _ => self.filter_keys(&float_ranges(condition, self.head().kind), rows),
        }
        Ok(())
    }

    /// Keeps the rows of a block of dictionary codes that lie in ranges.
    pub fn filter_codes(&self, codes: &Ranges, rows: &mut RowSet) -> Result<()> {
        self.expect_kind(self.head().kind == crate::Kind::Code)?;
        self.filter_keys(codes, rows);
        Ok(())
    }

    /// Keeps the rows that are NULL, or those that are not, whatever the block's kind.
    pub fn filter_nulls(&self, keep: bool, rows: &mut RowSet) {
        debug_assert_eq!(rows.rows(), self.head().rows, "a set of this block's rows");
        let mut buffer = LanesBuffer::new();
        for vector in 0..self.head().vectors() {
            if rows.is_empty_in(vector) {
                continue;
            }
            let mut validity = self.validity(vector, &mut buffer);
            if keep {
                validity.iter_mut().for_each(|word| *word = !*word);
            }
            rows.and_vector(vector, &validity);
        }
    }
}

#[cfg(test)]
mod tests;
