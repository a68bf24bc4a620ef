//! Rows that go through the steps together.

use super::{Bits, Column, bytes_copied};
use crate::Result;

/// Up to a few thousand rows.
#[derive(Debug, Clone)]
pub struct Batch {
    pub rows: usize,
    /// Each of `rows` rows.
    pub columns: Vec<Column>,
}

/// Which rows of a batch go on.
#[derive(Debug, Clone)]
pub enum Selection {
    All,
    /// These, ascending.
    Rows(Vec<u32>),
}

impl Selection {
    /// The rows whose bits are set.
    #[must_use]
    pub fn of(bits: &Bits) -> Self {
        let count = bits.count();
        if count == bits.rows() {
            return Self::All;
        }
        let mut rows = Vec::with_capacity(count);
        rows.extend(bits.ones().map(|row| u32::try_from(row).expect("a batch has fewer than 2^32 rows")));
        Self::Rows(rows)
    }
}

impl Batch {
    /// What it takes in memory once it is copied, roughly: its values, without what others share.
    #[must_use]
    pub fn bytes_copied(&self) -> usize {
        self.rows + self.columns.iter().map(bytes_copied).sum::<usize>()
    }

    /// The rows that are selected.
    ///
    /// # Errors
    /// As [`Column::take`].
    pub fn select(self, selection: &Selection) -> Result<Self> {
        let Selection::Rows(rows) = selection else { return Ok(self) };
        let columns = self.columns.iter().map(|column| column.take(rows)).collect::<Result<_>>()?;
        Ok(Self { rows: rows.len(), columns })
    }

    /// The rows from one to another.
    #[must_use]
    pub fn slice(self, start: usize, end: usize) -> Self {
        if start == 0 && end == self.rows {
            return self;
        }
        Self { rows: end - start, columns: self.columns.iter().map(|column| column.slice(start, end)).collect() }
    }
}
