//! Collects the rows of one worker, all or only candidates for the first N.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::top_n_bound::TopNBound;
use super::{SortSpec, Sorter};
use crate::vector::copied_bytes;
use crate::{Batch, Column, Error, Result, Selection};

/// Minimum number of rows beyond the limit at which a top-N collector is cut back to its first N rows; at least N.
const EXCESS_ROWS_MIN: usize = 512;

/// Approximate size of a part that is drained, in bytes. Sorting narrow rows needs a multiple of that.
const RUN_BYTES: usize = 64 << 20;

/// Collector of one worker's rows. With a limit it keeps about twice as many rows as the limit.
#[derive(Debug)]
pub struct SortCollector {
    spec: Arc<SortSpec>,
    rows: usize,
    /// Chunks of each column.
    columns: Vec<Vec<Column>>,
    bytes: usize,
    /// Keys of the N-th row so far, with a limit of N: rows that do not sort before it are dropped.
    bound: Option<TopNBound>,
    /// Number of times that the bound has been set.
    bound_version: usize,
}

impl SortCollector {
    /// Creates an empty collector.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>) -> Self {
        let columns = vec![Vec::new(); spec.column_types.len()];
        Self { spec: Arc::clone(spec), rows: 0, columns, bytes: 0, bound: None, bound_version: 0 }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// [`Error::Internal`] if its columns have other forms than the sort specification.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        if !self.spec.matches_column_types(&batch) {
            return Err(Error::Internal("a batch to sort has other columns than the sort specification"));
        }
        let batch = match &mut self.bound {
            Some(bound) => {
                let kept = bound.select_before(&batch)?;
                batch.select(&Selection::from_bitmap(&kept))?
            }
            None => batch,
        };
        if batch.rows == 0 {
            return Ok(());
        }
        self.rows += batch.rows;
        for (pieces, column) in self.columns.iter_mut().zip(batch.columns) {
            self.bytes += copied_bytes(&column);
            pieces.push(column);
        }
        match self.spec.fetch {
            Some(fetch) if fetch.max(EXCESS_ROWS_MIN) <= self.rows.saturating_sub(fetch) => {
                self.truncate_to_limit(fetch)
            }
            _ => Ok(()),
        }
    }

    /// Sorts the collected rows, keeps the first `fetch` and sets the bound.
    fn truncate_to_limit(&mut self, fetch: usize) -> Result<()> {
        let spec = Arc::clone(&self.spec);
        let next = Self { bound_version: self.bound_version + 1, ..Self::new(&spec) };
        let all = std::mem::replace(self, next);
        let first = Sorter::new(&spec, vec![all])?.sort(&AtomicBool::default())?.to_batch()?;
        self.bound = match fetch.checked_sub(1) {
            Some(last) if last < first.rows => Some(TopNBound::new(&spec.keys, &first, last)?),
            _ => None,
        };
        self.rows = first.rows;
        self.bytes = first.columns.iter().map(copied_bytes).sum();
        for (pieces, column) in self.columns.iter_mut().zip(first.columns) {
            pieces.push(column);
        }
        Ok(())
    }

    /// Passes all rows to `take` and removes them. Each part is to be sorted as a run of its own; parts are in arrival
    /// order.
    ///
    /// # Errors
    /// Errors of `take`.
    pub fn drain(&mut self, take: &mut dyn FnMut(Self) -> Result<()>) -> Result<()> {
        // The bound stays valid: the first N rows exist, although not in memory.
        let next = Self { bound: self.bound.take(), bound_version: self.bound_version, ..Self::new(&self.spec) };
        let Self { rows, columns, .. } = std::mem::replace(self, next);
        let mut part = Self::new(&self.spec);
        if columns.is_empty() {
            part.rows = rows;
        }
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        while let Some(pieces) = columns.iter_mut().map(Iterator::next).collect::<Option<Vec<Column>>>()
            && let Some(first) = pieces.first()
        {
            part.rows += first.rows();
            for (before, piece) in part.columns.iter_mut().zip(pieces) {
                part.bytes += copied_bytes(&piece);
                before.push(piece);
            }
            if RUN_BYTES <= part.bytes {
                take(std::mem::replace(&mut part, Self::new(&self.spec)))?;
            }
        }
        if part.rows == 0 { Ok(()) } else { take(part) }
    }

    /// Returns the approximate memory that sorting one drained part needs, beside the part itself.
    #[must_use]
    pub fn sort_memory_bytes(&self) -> usize {
        let whole = Sorter::sort_memory_bytes(std::iter::once(self));
        whole / (self.bytes / RUN_BYTES).max(1)
    }

    /// Returns the bound of a top-N sort: the number of times that it has been set, and the first key of the N-th row
    /// so far, as a column of one row. Rows whose first key sorts after it cannot be among the first N.
    #[must_use]
    pub fn bound(&self) -> Option<(usize, &Column)> {
        Some((self.bound_version, self.bound.as_ref()?.first_key()?))
    }

    /// Returns the number of collected rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the sort specification.
    #[must_use]
    pub fn spec(&self) -> &Arc<SortSpec> {
        &self.spec
    }

    /// Removes and returns the chunks of a column.
    pub(super) fn take_column(&mut self, position: usize) -> Vec<Column> {
        self.columns.get_mut(position).map(std::mem::take).unwrap_or_default()
    }
}
