//! Rows in order that come batch by batch: those of a partition go on, with what is computed of them, when all of them have come.

use std::sync::Arc;

use super::{Ordered, columns, starts};
use crate::sort::SortSpec;
use crate::vector::concat;
use crate::{Batch, Error, Form, Result};

/// With so many rows partitions are looked for.
const ROWS_MIN: usize = 1 << 14;

/// Times that rows lie in memory while functions are computed of them: as they came, and together.
const COPIES: usize = 2;

/// Rows whose partition may not have ended.
#[derive(Debug)]
pub struct ByPartition {
    spec: Arc<SortSpec>,
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
    rows_due: usize,
}

impl ByPartition {
    /// No rows yet, of those that `spec` sorts.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>) -> Self {
        Self { spec: Arc::clone(spec), batches: Vec::new(), rows: 0, bytes: 0, rows_due: ROWS_MIN }
    }

    /// Takes the rows that come next.
    pub fn push(&mut self, batch: Batch) {
        self.rows += batch.rows;
        self.bytes += batch.bytes_copied();
        self.batches.push(batch);
    }

    /// What computing the functions of its rows takes in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let functions = self.spec.windows.as_ref().map_or(0, |windows| windows.functions.len());
        COPIES * self.bytes + self.rows * functions * size_of::<i128>()
    }

    /// Whether there are rows enough to look for partitions that have ended.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.rows_due <= self.rows
    }

    /// The rows of partitions that have ended, with the functions' columns; none where no partition has. `is_last` says that all have.
    ///
    /// # Errors
    /// Those of the functions, and where rows have other columns than those that are sorted.
    pub fn ended(&mut self, is_last: bool) -> Result<Option<Batch>> {
        let windows = self.spec.windows.as_ref().ok_or(Error::Form("window functions that are not there"))?;
        let batches = std::mem::take(&mut self.batches);
        if !batches.iter().all(|batch| self.spec.has_forms_of(batch)) {
            return Err(Error::Form("rows that window functions are computed of have other columns"));
        }
        let column = |(position, form): (usize, Form)| {
            let pieces = batches.iter().map(|batch: &Batch| batch.columns[position].clone());
            concat(pieces.collect(), form)
        };
        let together = self.spec.forms.iter().copied().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        drop(batches);
        let all = Batch { rows: std::mem::take(&mut self.rows), columns: together };
        self.bytes = 0;
        let ordered = Ordered { rows: all.rows, columns: &all.columns, order: None };
        let starts = starts(&ordered, &windows.partition_by, 0..all.rows)?;
        let end = if is_last { all.rows } else { starts.ones().last().unwrap_or(0) };
        if end == 0 {
            // The more there are, the less often they are looked at.
            self.rows_due = 2 * all.rows;
            self.push(all);
            return Ok(None);
        }
        let computed = columns(windows, &ordered, &starts, 0..end)?;
        let mut ended = all.clone().slice(0, end);
        ended.columns.extend(computed);
        self.push(all.clone().slice(end, all.rows));
        self.rows_due = ROWS_MIN.max(2 * self.rows);
        Ok(Some(ended))
    }
}
