//! Collection of the build side by one worker.

use std::sync::Arc;

use super::JoinSpec;
use crate::vector::copied_bytes;
use crate::{Batch, Column, Error, PhysicalType, Result};

/// Rows per batch when rows without any columns are drained.
const DRAIN_BATCH_ROWS: usize = 1 << 16;

/// Build-side rows collected by one worker.
#[derive(Debug)]
pub struct BuildCollector {
    spec: Arc<JoinSpec>,
    rows: usize,
    /// Collected pieces of each column; empty for columns that the join does not use.
    columns: Vec<Vec<Column>>,
    /// Approximate bytes of the collected columns.
    bytes: usize,
}

impl BuildCollector {
    /// Creates an empty collection.
    #[must_use]
    pub fn new(spec: &Arc<JoinSpec>) -> Self {
        Self { spec: Arc::clone(spec), rows: 0, columns: vec![Vec::new(); spec.build_types.len()], bytes: 0 }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] if its columns have other physical types than the build side's.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        if batch.columns.len() != self.columns.len() {
            return Err(Error::Internal("a build-side batch has the wrong number of columns"));
        }
        if batch.columns.iter().any(|column| column.rows() != batch.rows) {
            return Err(Error::Internal("a build-side batch has columns of differing lengths"));
        }
        if !batch
            .columns
            .iter()
            .zip(&self.spec.build_types)
            .all(|(column, form)| form.is_compatible_with(PhysicalType::from_column(column)))
        {
            return Err(Error::Internal("a build-side column has another physical type"));
        }
        if batch.rows == 0 {
            return Ok(());
        }
        self.rows += batch.rows;
        for (position, column) in batch.columns.into_iter().enumerate() {
            if self.spec.uses_build_column(position) {
                self.bytes += copied_bytes(&column);
                self.columns[position].push(column);
            }
        }
        Ok(())
    }

    /// Passes all rows to `take`, in batches as they were added but last batch first, and leaves the collection
    /// empty.
    ///
    /// # Errors
    /// Returns the errors of `take`.
    pub fn drain(&mut self, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let Self { rows, mut columns, .. } = std::mem::replace(self, Self::new(&self.spec));
        let pieces = columns.iter().map(Vec::len).max().unwrap_or_default();
        if pieces == 0 {
            // Only the number of rows is known.
            let none = |rows: usize| self.spec.build_types.iter().map(|form| form.null_column(rows)).collect();
            let mut counts = (0..rows).step_by(DRAIN_BATCH_ROWS).map(|start| DRAIN_BATCH_ROWS.min(rows - start));
            return counts.try_for_each(|rows| take(Batch { rows, columns: none(rows) }));
        }
        // Pieces are popped from the end, so that each is freed as soon as it has been passed on.
        for piece in (0..pieces).rev() {
            let there: Vec<Option<Column>> = columns.iter_mut().map(|column| column.pop()).collect();
            let rows = there.iter().flatten().next().map_or(0, Column::rows);
            let column =
                |(column, form): (Option<Column>, &PhysicalType)| column.unwrap_or_else(|| form.null_column(rows));
            debug_assert!(columns.iter().all(|left| left.is_empty() || left.len() == piece), "unequal piece counts");
            take(Batch { rows, columns: there.into_iter().zip(&self.spec.build_types).map(column).collect() })?;
        }
        Ok(())
    }

    /// Returns the approximate bytes of the collected columns.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of collected rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns that have collected pieces.
    pub(super) fn column_count(&self) -> usize {
        self.columns.iter().filter(|pieces| !pieces.is_empty()).count()
    }

    /// Removes and returns the pieces of a column.
    pub(super) fn take_column(&mut self, position: usize) -> Vec<Column> {
        self.columns.get_mut(position).map(std::mem::take).unwrap_or_default()
    }
}
