//! What one worker collects of the build side.

use std::sync::Arc;

use super::JoinSpec;
use crate::vector::bytes_copied;
use crate::{Batch, Column, Error, Form, Result};

/// Rows of which nothing but their number is known are given in batches of so many.
const ROWS_AT_ONCE: usize = 1 << 16;

/// A worker's part of the build side.
#[derive(Debug)]
pub struct Build {
    spec: Arc<JoinSpec>,
    rows: usize,
    /// The pieces of each column; none of columns that the join does not use.
    columns: Vec<Vec<Column>>,
    bytes: usize,
}

impl Build {
    /// Nothing collected yet.
    #[must_use]
    pub fn new(spec: &Arc<JoinSpec>) -> Self {
        Self { spec: Arc::clone(spec), rows: 0, columns: vec![Vec::new(); spec.build_forms.len()], bytes: 0 }
    }

    /// Takes a batch.
    ///
    /// # Errors
    /// Where its columns have other forms than the build side's.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        if batch.columns.len() != self.columns.len() {
            return Err(Error::Form("a batch of a join's build side has another number of columns"));
        }
        if batch.columns.iter().any(|column| column.rows() != batch.rows) {
            return Err(Error::Form("a batch of a join's build side has columns of other lengths"));
        }
        if !batch.columns.iter().zip(&self.spec.build_forms).all(|(column, form)| form.is_like(Form::of(column))) {
            return Err(Error::Form("a column of a join's build side"));
        }
        if batch.rows == 0 {
            return Ok(());
        }
        self.rows += batch.rows;
        for (position, column) in batch.columns.into_iter().enumerate() {
            if self.spec.uses_build(position) {
                self.bytes += bytes_copied(&column);
                self.columns[position].push(column);
            }
        }
        Ok(())
    }

    /// Gives all rows away, in the batches that they came in.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn drain(&mut self, take: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let Self { rows, mut columns, .. } = std::mem::replace(self, Self::new(&self.spec));
        let pieces = columns.iter().map(Vec::len).max().unwrap_or_default();
        if pieces == 0 {
            // Nothing is known of them but their number.
            let none = |rows: usize| self.spec.build_forms.iter().map(|form| form.nulls(rows)).collect();
            let mut counts = (0..rows).step_by(ROWS_AT_ONCE).map(|start| ROWS_AT_ONCE.min(rows - start));
            return counts.try_for_each(|rows| take(Batch { rows, columns: none(rows) }));
        }
        // From the last on, so that each is free when it has been given.
        for piece in (0..pieces).rev() {
            let there: Vec<Option<Column>> = columns.iter_mut().map(|column| column.pop()).collect();
            let rows = there.iter().flatten().next().map_or(0, Column::rows);
            let column = |(column, form): (Option<Column>, &Form)| column.unwrap_or_else(|| form.nulls(rows));
            debug_assert!(columns.iter().all(|left| left.is_empty() || left.len() == piece), "pieces of all columns");
            take(Batch { rows, columns: there.into_iter().zip(&self.spec.build_forms).map(column).collect() })?;
        }
        Ok(())
    }

    /// What the collected columns take in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// How many rows are collected.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns are collected.
    pub(super) fn columns(&self) -> usize {
        self.columns.iter().filter(|pieces| !pieces.is_empty()).count()
    }

    /// Gives the pieces of a column away.
    pub(super) fn take_column(&mut self, position: usize) -> Vec<Column> {
        self.columns.get_mut(position).map(std::mem::take).unwrap_or_default()
    }
}
