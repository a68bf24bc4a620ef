//! Sorted rows, read in ranges, and the columns of their window functions.

use std::ops::Range;
use std::sync::Arc;

use super::SortSpec;
use crate::vector::concat;
use crate::window::{self, OrderedRows, WindowSpec};
use crate::{BATCH_ROWS, Batch, Bitmap, Column, Error, Result};

/// Rows whose window functions are computed together; a multiple of 64, so that shares of bitmaps concatenate by words.
const WINDOW_SHARE_ROWS: usize = 1 << 17;

/// Sorted rows: columns, the order of their rows, and columns of window functions.
#[derive(Debug)]
pub struct SortedRows {
    spec: Arc<SortSpec>,
    rows: usize,
    columns: Vec<Column>,
    /// Index of each row in the columns; `None` if the columns are in order themselves.
    order: Option<Vec<u32>>,
    /// Columns of window functions, in order.
    windows: Vec<Column>,
}

impl SortedRows {
    pub(super) fn new(spec: Arc<SortSpec>, rows: usize, columns: Vec<Column>, order: Option<Vec<u32>>) -> Self {
        Self { spec, rows, columns, order, windows: Vec::new() }
    }

    /// Returns the number of shares by which window functions are computed in parallel; 0 if there are none.
    #[must_use]
    pub fn window_shares(&self) -> usize {
        if self.spec.windows.is_some() { self.rows.div_ceil(WINDOW_SHARE_ROWS) } else { 0 }
    }

    /// Returns which rows of a share are the first of their partition.
    ///
    /// # Errors
    /// [`Error::Internal`] if there are no window functions.
    pub fn partition_starts(&self, share: usize) -> Result<Bitmap> {
        window::find_starts(&self.ordered(), &self.window_spec()?.partition_by, self.range(share))
    }

    /// Concatenates the partition starts of all shares.
    #[must_use]
    pub fn concat_starts(&self, shares: &[Bitmap]) -> Bitmap {
        Bitmap::from_words(shares.iter().flat_map(|share| share.words().iter().copied()).collect(), self.rows)
    }

    /// Computes the window functions of the partitions that start in a share. `starts` covers all rows.
    ///
    /// # Errors
    /// Errors of the functions.
    pub fn window_columns(&self, share: usize, starts: &Bitmap) -> Result<Vec<Column>> {
        window::compute_columns(self.window_spec()?, &self.ordered(), starts, self.range(share))
    }

    /// Adds the window functions' columns, given those of all shares in order.
    ///
    /// # Errors
    /// Internal errors only.
    pub fn with_windows(mut self, shares: Vec<Vec<Column>>) -> Result<Self> {
        let functions = self.window_spec()?.functions.clone();
        let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
        for function in &functions {
            let pieces = shares.iter_mut().filter_map(Iterator::next).collect();
            self.windows.push(concat(pieces, window::result_type(function, &self.spec.column_types))?);
        }
        Ok(self)
    }

    fn window_spec(&self) -> Result<&WindowSpec> {
        self.spec.windows.as_ref().ok_or(Error::Internal("window functions were requested from a sort that has none"))
    }

    fn ordered(&self) -> OrderedRows<'_> {
        OrderedRows { rows: self.rows, columns: &self.columns, order: self.order.as_deref() }
    }

    fn range(&self, share: usize) -> Range<usize> {
        self.rows.min(share * WINDOW_SHARE_ROWS)..self.rows.min((share + 1) * WINDOW_SHARE_ROWS)
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().chain(&self.windows).map(Column::memory_bytes).sum();
        columns + self.order.as_ref().map_or(0, |order| order.len() * size_of::<u32>())
    }

    /// Returns the batch with this number, counted from 0; `None` after the last.
    ///
    /// # Errors
    /// As [`Column::take`].
    pub fn batch(&self, number: usize) -> Result<Option<Batch>> {
        let start = number.saturating_mul(BATCH_ROWS);
        if self.rows <= start {
            return Ok(None);
        }
        self.batch_between(start, self.rows.min(start + BATCH_ROWS)).map(Some)
    }

    /// Returns all rows as one batch.
    pub(super) fn to_batch(&self) -> Result<Batch> {
        self.batch_between(0, self.rows)
    }

    /// Returns the rows from position `start` to `end`.
    ///
    /// # Errors
    /// As [`Column::take`].
    pub fn batch_between(&self, start: usize, end: usize) -> Result<Batch> {
        let column = |column: &Column| match &self.order {
            Some(order) => column.take(&order[start..end]),
            None => Ok(column.slice(start, end)),
        };
        let windows = self.windows.iter().map(|column| Ok(column.slice(start, end)));
        Ok(Batch { rows: end - start, columns: self.columns.iter().map(column).chain(windows).collect::<Result<_>>()? })
    }
}
