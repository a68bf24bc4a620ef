//! Batches of rows and selections of their rows.

use super::{Bitmap, Column, copied_bytes};
use crate::Result;

/// Rows in columnar form, usually up to a few thousand.
#[derive(Debug, Clone)]
pub struct Batch {
    pub rows: usize,
    /// The columns, each with `rows` rows.
    pub columns: Vec<Column>,
}

/// Selected rows of a batch.
#[derive(Debug, Clone)]
pub enum Selection {
    /// All rows of the batch.
    All,
    /// Rows with these numbers, in ascending order.
    Rows(Vec<u32>),
}

impl Selection {
    /// Selects the rows whose bits are set.
    #[must_use]
    pub fn from_bitmap(bits: &Bitmap) -> Self {
        let count = bits.count_ones();
        if count == bits.rows() {
            return Self::All;
        }
        let mut rows = Vec::with_capacity(count);
        rows.extend(bits.ones().map(|row| u32::try_from(row).expect("a batch has fewer than 2^32 rows")));
        Self::Rows(rows)
    }
}

impl Batch {
    /// Returns the approximate bytes of the batch after it has been copied, without buffers shared with other
    /// batches.
    #[must_use]
    pub fn copied_bytes(&self) -> usize {
        self.rows + self.columns.iter().map(copied_bytes).sum::<usize>()
    }

    /// Returns the selected rows.
    ///
    /// # Errors
    /// Returns the errors of [`Column::take`].
    pub fn select(self, selection: &Selection) -> Result<Self> {
        let Selection::Rows(rows) = selection else { return Ok(self) };
        let columns = self.columns.iter().map(|column| column.take(rows)).collect::<Result<_>>()?;
        Ok(Self { rows: rows.len(), columns })
    }

    /// Returns the rows in `start..end`.
    #[must_use]
    pub fn slice(self, start: usize, end: usize) -> Self {
        if start == 0 && end == self.rows {
            return self;
        }
        Self { rows: end - start, columns: self.columns.iter().map(|column| column.slice(start, end)).collect() }
    }
}
