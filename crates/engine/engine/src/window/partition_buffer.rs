//! Window functions over sorted rows that arrive batch by batch.
//!
//! Rows are buffered until their partition is complete. Those of a long partition are computed earlier if the functions
//! only look at nearby rows (`partition_chunk.rs`).

use std::sync::Arc;

use super::partition_chunk::{PartitionState, RowReach, compute_chunk};
use super::{OrderedRows, WindowSpec, compute_columns, find_starts};
use crate::sort::SortSpec;
use crate::vector::concat;
use crate::{Batch, Error, PhysicalType, Result};

/// Minimum number of buffered rows at which complete partitions are looked for.
const BUFFERED_ROWS_MIN: usize = 1 << 14;

/// Copies of the rows in memory while functions are computed: the batches, and their concatenation.
const ROW_COPIES: usize = 2;

/// Buffer of sorted rows whose partition may be incomplete.
#[derive(Debug)]
pub struct PartitionBuffer {
    spec: Arc<SortSpec>,
    /// Nearby rows that the functions need; `None` if they may need all rows of a partition.
    reach: Option<RowReach>,
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
    /// Number of rows at which complete partitions are looked for next.
    next_check_rows: usize,
    /// State of the first rows' partition, if some of its rows have been returned.
    carried: Option<PartitionState>,
}

impl PartitionBuffer {
    /// Creates an empty buffer for rows sorted by `spec`.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>) -> Self {
        Self {
            spec: Arc::clone(spec),
            reach: spec.windows.as_ref().and_then(RowReach::try_from_spec),
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            next_check_rows: BUFFERED_ROWS_MIN,
            carried: None,
        }
    }

    /// Returns the sort specification, with the window functions.
    #[must_use]
    pub fn spec(&self) -> &Arc<SortSpec> {
        &self.spec
    }

    /// Appends the next rows.
    pub fn push(&mut self, batch: Batch) {
        self.rows += batch.rows;
        self.bytes += batch.copied_bytes();
        self.batches.push(batch);
    }

    /// Removes and returns the buffered rows of an incomplete partition; none if some of its rows have been returned
    /// already.
    pub fn take_partition(&mut self) -> Vec<Batch> {
        if self.carried.is_some() {
            return Vec::new();
        }
        (self.rows, self.bytes, self.next_check_rows) = (0, 0, BUFFERED_ROWS_MIN);
        std::mem::take(&mut self.batches)
    }

    /// Returns the approximate memory needed to compute the functions of the buffered rows, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let functions = self.spec.windows.as_ref().map_or(0, |windows| windows.functions.len());
        ROW_COPIES * self.bytes + self.rows * functions * size_of::<i128>()
    }

    /// Returns whether enough rows are buffered to look for complete partitions.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.next_check_rows <= self.rows
    }

    /// Returns the rows of complete partitions with the functions' columns, and those rows of a long partition whose
    /// functions can be computed already. `is_last` means that no more rows come, so that all partitions are complete.
    ///
    /// # Errors
    /// Errors of the functions; [`Error::Internal`] if the rows have other columns than the sort specification.
    pub fn compute_ended(&mut self, is_last: bool) -> Result<Vec<Batch>> {
        if self.rows == 0 {
            return Ok(Vec::new());
        }
        let all = self.take_all()?;
        let spec = Arc::clone(&self.spec);
        let windows = spec
            .windows
            .as_ref()
            .ok_or(Error::Internal("window functions were requested from a sort that has none"))?;
        let ordered = OrderedRows { rows: all.rows, columns: &all.columns, order: None };
        let starts = find_starts(&ordered, &windows.partition_by, 0..all.rows)?;
        let (mut given, mut from) = (Vec::new(), 0);
        if let Some(carried) = self.carried.take()
            && carried.is_same_partition(windows, &all)?
        {
            let stop = starts.ones().nth(1).unwrap_or(all.rows);
            let has_ended = is_last || stop < all.rows;
            from = self.compute_chunk(windows, Some(carried), all.clone().slice(0, stop), has_ended, &mut given)?;
        }
        let last_start = if is_last { all.rows } else { starts.ones().last().unwrap_or(0) };
        if self.carried.is_none() && from < last_start {
            let mut rows = all.clone().slice(from, last_start);
            rows.columns.extend(compute_columns(windows, &ordered, &starts, from..last_start)?);
            given.push(rows);
            from = last_start;
        }
        if self.carried.is_none() && given.is_empty() {
            from = self.compute_chunk(windows, None, all.clone(), is_last, &mut given)?;
        }
        self.push(all.clone().slice(from, all.rows));
        // Doubling keeps the repeated searches linear in the number of rows.
        self.next_check_rows = if given.is_empty() { 2 * all.rows } else { BUFFERED_ROWS_MIN.max(2 * self.rows) };
        Ok(given)
    }

    /// Computes the rows of one partition that can be computed, all of them if it `has_ended`, and returns their
    /// number.
    fn compute_chunk(
        &mut self,
        windows: &WindowSpec,
        carried: Option<PartitionState>,
        rows: Batch,
        has_ended: bool,
        given: &mut Vec<Batch>,
    ) -> Result<usize> {
        let Some(reach) = self.reach else { return Ok(0) };
        let end = if has_ended { rows.rows } else { reach.computable_rows(windows, &rows)? };
        if end == 0 {
            self.carried = carried;
            return Ok(0);
        }
        let (computed, next) = compute_chunk(windows, reach, carried.as_ref(), &rows, end)?;
        let mut rows = rows.slice(0, end);
        rows.columns.extend(computed);
        given.push(rows);
        self.carried = (!has_ended).then_some(next);
        Ok(end)
    }

    /// Removes all buffered rows and concatenates them.
    fn take_all(&mut self) -> Result<Batch> {
        let batches = std::mem::take(&mut self.batches);
        if !batches.iter().all(|batch| self.spec.matches_column_types(batch)) {
            return Err(Error::Internal("rows for window functions have other columns than the sort specification"));
        }
        self.bytes = 0;
        let column = |(position, form): (usize, PhysicalType)| {
            let pieces = batches.iter().map(|batch: &Batch| batch.columns[position].clone());
            concat(pieces.collect(), form)
        };
        let columns = self.spec.column_types.iter().copied().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Batch { rows: std::mem::take(&mut self.rows), columns })
    }
}
