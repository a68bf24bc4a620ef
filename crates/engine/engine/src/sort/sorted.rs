//! Rows in their order, to be given in parts.

use std::ops::Range;
use std::sync::Arc;

use super::SortSpec;
use crate::vector::concat;
use crate::window::{self, Ordered, WindowSpec};
use crate::{BATCH_ROWS, Batch, Bits, Column, Error, Result};

/// Rows that window functions are computed of together; whole words of bits.
const SHARE_ROWS: usize = 1 << 17;

/// Rows in order.
#[derive(Debug)]
pub struct SortedRows {
    spec: Arc<SortSpec>,
    rows: usize,
    columns: Vec<Column>,
    /// Where each row is in the columns; none where they are in order themselves.
    order: Option<Vec<u32>>,
    /// What window functions have computed, in order.
    windows: Vec<Column>,
}

impl SortedRows {
    pub(super) fn new(spec: Arc<SortSpec>, rows: usize, columns: Vec<Column>, order: Option<Vec<u32>>) -> Self {
        Self { spec, rows, columns, order, windows: Vec::new() }
    }

    /// How many shares window functions can be computed by; none without such functions.
    #[must_use]
    pub fn shares(&self) -> usize {
        if self.spec.windows.is_some() { self.rows.div_ceil(SHARE_ROWS) } else { 0 }
    }

    /// Which rows of a share are the first of their partition.
    ///
    /// # Errors
    /// Where a partition's column is not there.
    pub fn partition_starts(&self, share: usize) -> Result<Bits> {
        window::starts(&self.ordered(), &self.windowed()?.partition_by, self.range(share))
    }

    /// All shares' as one.
    #[must_use]
    pub fn all_starts(&self, shares: &[Bits]) -> Bits {
        Bits::of_words(shares.iter().flat_map(|share| share.words().iter().copied()).collect(), self.rows)
    }

    /// The window functions' columns of a share: of the partitions that begin there.
    ///
    /// # Errors
    /// Those of the functions.
    pub fn window_columns(&self, share: usize, starts: &Bits) -> Result<Vec<Column>> {
        window::columns(self.windowed()?, &self.ordered(), starts, self.range(share))
    }

    /// With the window functions' columns, those of all shares in their order.
    ///
    /// # Errors
    /// None that well-formed columns meet.
    pub fn with_windows(mut self, shares: Vec<Vec<Column>>) -> Result<Self> {
        let functions = self.windowed()?.functions.clone();
        let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
        for function in &functions {
            let pieces = shares.iter_mut().filter_map(Iterator::next).collect();
            self.windows.push(concat(pieces, window::form_of(function, &self.spec.forms))?);
        }
        Ok(self)
    }

    fn windowed(&self) -> Result<&WindowSpec> {
        self.spec.windows.as_ref().ok_or(Error::Form("window functions that are not there"))
    }

    fn ordered(&self) -> Ordered<'_> {
        Ordered { rows: self.rows, columns: &self.columns, order: self.order.as_deref() }
    }

    fn range(&self, share: usize) -> Range<usize> {
        self.rows.min(share * SHARE_ROWS)..self.rows.min((share + 1) * SHARE_ROWS)
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What they take in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().chain(&self.windows).map(Column::memory_bytes).sum();
        columns + self.order.as_ref().map_or(0, |order| order.len() * size_of::<u32>())
    }

    /// The rows by batches, counted from 0; `None` after the last.
    ///
    /// # Errors
    /// As [`Column::take`].
    pub fn batch(&self, number: usize) -> Result<Option<Batch>> {
        let start = number.saturating_mul(BATCH_ROWS);
        if self.rows <= start {
            return Ok(None);
        }
        self.between(start, self.rows.min(start + BATCH_ROWS)).map(Some)
    }

    /// All rows as one batch.
    pub(super) fn whole(&self) -> Result<Batch> {
        self.between(0, self.rows)
    }

    /// The rows from one place to another.
    ///
    /// # Errors
    /// As [`Column::take`].
    pub fn between(&self, start: usize, end: usize) -> Result<Batch> {
        let column = |column: &Column| match &self.order {
            Some(order) => column.take(&order[start..end]),
            None => Ok(column.slice(start, end)),
        };
        let windows = self.windows.iter().map(|column| Ok(column.slice(start, end)));
        Ok(Batch { rows: end - start, columns: self.columns.iter().map(column).chain(windows).collect::<Result<_>>()? })
    }
}
