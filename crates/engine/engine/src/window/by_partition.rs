//! Rows in order that come batch by batch: those of a partition go on, with what is computed of them, when all of them have come; of a long
//! one sooner, where the functions look at no row that is far away (`part.rs`).

use std::sync::Arc;

use super::part::{Carried, Reach, columns_of_part};
use super::{Ordered, WindowSpec, columns, starts};
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
    /// None where functions may need all rows of a partition.
    reach: Option<Reach>,
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
    rows_due: usize,
    /// Of the partition that the first rows belong to, where some of it is gone.
    carried: Option<Carried>,
}

impl ByPartition {
    /// No rows yet, of those that `spec` sorts.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>) -> Self {
        Self {
            spec: Arc::clone(spec),
            reach: spec.windows.as_ref().and_then(Reach::of),
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            rows_due: ROWS_MIN,
            carried: None,
        }
    }

    /// Returns what it sorts by and computes.
    #[must_use]
    pub fn spec(&self) -> &Arc<SortSpec> {
        &self.spec
    }

    /// Takes the rows that come next.
    pub fn push(&mut self, batch: Batch) {
        self.rows += batch.rows;
        self.bytes += batch.bytes_copied();
        self.batches.push(batch);
    }

    /// Takes away the rows of a partition that has not ended; none where some of its rows are gone already.
    pub fn take_partition(&mut self) -> Vec<Batch> {
        if self.carried.is_some() {
            return Vec::new();
        }
        (self.rows, self.bytes, self.rows_due) = (0, 0, ROWS_MIN);
        std::mem::take(&mut self.batches)
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

    /// The rows of partitions that have ended, with the functions' columns, and of a long one what can be known already; none where there are
    /// no such rows. `is_last` says that all partitions have ended.
    ///
    /// # Errors
    /// Those of the functions, and where rows have other columns than those that are sorted.
    pub fn ended(&mut self, is_last: bool) -> Result<Vec<Batch>> {
        if self.rows == 0 {
            return Ok(Vec::new());
        }
        let all = self.together()?;
        let spec = Arc::clone(&self.spec);
        let windows = spec.windows.as_ref().ok_or(Error::Form("window functions that are not there"))?;
        let ordered = Ordered { rows: all.rows, columns: &all.columns, order: None };
        let starts = starts(&ordered, &windows.partition_by, 0..all.rows)?;
        let (mut given, mut from) = (Vec::new(), 0);
        if let Some(carried) = self.carried.take()
            && carried.is_continued_by(windows, &all)?
        {
            let stop = starts.ones().nth(1).unwrap_or(all.rows);
            let has_ended = is_last || stop < all.rows;
            from = self.give_part(windows, Some(carried), all.clone().slice(0, stop), has_ended, &mut given)?;
        }
        let last_start = if is_last { all.rows } else { starts.ones().last().unwrap_or(0) };
        if self.carried.is_none() && from < last_start {
            let mut rows = all.clone().slice(from, last_start);
            rows.columns.extend(columns(windows, &ordered, &starts, from..last_start)?);
            given.push(rows);
            from = last_start;
        }
        if self.carried.is_none() && given.is_empty() {
            from = self.give_part(windows, None, all.clone(), is_last, &mut given)?;
        }
        self.push(all.clone().slice(from, all.rows));
        // The more there are, the less often they are looked at.
        self.rows_due = if given.is_empty() { 2 * all.rows } else { ROWS_MIN.max(2 * self.rows) };
        Ok(given)
    }

    /// Gives of the rows of one partition what can be known: all, if it `has_ended`. How many these are.
    fn give_part(
        &mut self,
        windows: &WindowSpec,
        carried: Option<Carried>,
        rows: Batch,
        has_ended: bool,
        given: &mut Vec<Batch>,
    ) -> Result<usize> {
        let Some(reach) = self.reach else { return Ok(0) };
        let end = if has_ended { rows.rows } else { reach.end(windows, &rows)? };
        if end == 0 {
            self.carried = carried;
            return Ok(0);
        }
        let (computed, next) = columns_of_part(windows, reach, carried.as_ref(), &rows, end)?;
        let mut rows = rows.slice(0, end);
        rows.columns.extend(computed);
        given.push(rows);
        self.carried = (!has_ended).then_some(next);
        Ok(end)
    }

    /// All its rows, which it has no more.
    fn together(&mut self) -> Result<Batch> {
        let batches = std::mem::take(&mut self.batches);
        if !batches.iter().all(|batch| self.spec.has_forms_of(batch)) {
            return Err(Error::Form("rows that window functions are computed of have other columns"));
        }
        self.bytes = 0;
        let column = |(position, form): (usize, Form)| {
            let pieces = batches.iter().map(|batch: &Batch| batch.columns[position].clone());
            concat(pieces.collect(), form)
        };
        let columns = self.spec.forms.iter().copied().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Batch { rows: std::mem::take(&mut self.rows), columns })
    }
}
