//! What one worker collects.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::bound::Bound;
use super::{SortSpec, Sorter};
use crate::vector::bytes_copied;
use crate::{Batch, Column, Error, Result, Selection};

/// So many rows more than are asked for, and as many as are asked for, are worth looking for the first ones anew.
const MORE_MIN: usize = 512;

/// What is given away together, about. Sorting it takes some times as much where rows are narrow.
const PART_BYTES: usize = 64 << 20;

/// A worker's part of the rows. Of the first rows alone it keeps a few more than are asked for.
#[derive(Debug)]
pub struct Sorting {
    spec: Arc<SortSpec>,
    rows: usize,
    /// The pieces of each column.
    columns: Vec<Vec<Column>>,
    bytes: usize,
    /// The last of as many rows as are asked for: what comes after it is not kept.
    bound: Option<Bound>,
    /// How often there has been another.
    bounds: usize,
}

impl Sorting {
    /// Nothing collected yet.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>) -> Self {
        let columns = vec![Vec::new(); spec.forms.len()];
        Self { spec: Arc::clone(spec), rows: 0, columns, bytes: 0, bound: None, bounds: 0 }
    }

    /// Takes a batch.
    ///
    /// # Errors
    /// Where its columns have other forms than the others'.
    pub fn push(&mut self, batch: Batch) -> Result<()> {
        if !self.spec.has_forms_of(&batch) {
            return Err(Error::Form("a batch that is sorted has other columns"));
        }
        let batch = match &mut self.bound {
            Some(bound) => {
                let kept = bound.keep(&batch)?;
                batch.select(&Selection::of(&kept))?
            }
            None => batch,
        };
        if batch.rows == 0 {
            return Ok(());
        }
        self.rows += batch.rows;
        for (pieces, column) in self.columns.iter_mut().zip(batch.columns) {
            self.bytes += bytes_copied(&column);
            pieces.push(column);
        }
        match self.spec.fetch {
            Some(fetch) if fetch.max(MORE_MIN) <= self.rows.saturating_sub(fetch) => self.narrow(fetch),
            _ => Ok(()),
        }
    }

    /// Keeps the first rows alone.
    fn narrow(&mut self, fetch: usize) -> Result<()> {
        let spec = Arc::clone(&self.spec);
        let next = Self { bounds: self.bounds + 1, ..Self::new(&spec) };
        let all = std::mem::replace(self, next);
        let first = Sorter::new(&spec, vec![all])?.sorted(&AtomicBool::default())?.whole()?;
        self.bound = match fetch.checked_sub(1) {
            Some(last) if last < first.rows => Some(Bound::new(&spec.keys, &first, last)?),
            _ => None,
        };
        self.rows = first.rows;
        self.bytes = first.columns.iter().map(bytes_copied).sum();
        for (pieces, column) in self.columns.iter_mut().zip(first.columns) {
            pieces.push(column);
        }
        Ok(())
    }

    /// Gives all rows away, in parts that are sorted alone, in the order that they have come in.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn drain(&mut self, take: &mut dyn FnMut(Self) -> Result<()>) -> Result<()> {
        // What comes after as many rows as are asked for is not wanted wherever these are.
        let next = Self { bound: self.bound.take(), bounds: self.bounds, ..Self::new(&self.spec) };
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
                part.bytes += bytes_copied(&piece);
                before.push(piece);
            }
            if PART_BYTES <= part.bytes {
                take(std::mem::replace(&mut part, Self::new(&self.spec)))?;
            }
        }
        if part.rows == 0 { Ok(()) } else { take(part) }
    }

    /// What sorting takes, roughly, beside what a part that is given away takes itself.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        let whole = Sorter::room_bytes(std::iter::once(self));
        whole / (self.bytes / PART_BYTES).max(1)
    }

    /// Of the first rows alone: the first key of the last of them so far, as a column of one row, and how often it has been another. Rows whose
    /// key comes after it are not wanted.
    #[must_use]
    pub fn bound(&self) -> Option<(usize, &Column)> {
        Some((self.bounds, self.bound.as_ref()?.first_key()?))
    }

    /// How many rows are collected.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What they take in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// What is sorted by what.
    #[must_use]
    pub fn spec(&self) -> &Arc<SortSpec> {
        &self.spec
    }

    /// Gives the pieces of a column away.
    pub(super) fn take_column(&mut self, position: usize) -> Vec<Column> {
        self.columns.get_mut(position).map(std::mem::take).unwrap_or_default()
    }
}
