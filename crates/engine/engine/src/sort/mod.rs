//! Sorting: rows that workers have collected, in the order of some columns.
//!
//! A worker collects batches in [`Sorting`], of the first few rows alone those that may be among them (`bound.rs`). A [`Sorter`] has them all:
//! `packed.rs` makes one number of the leading keys of a row, `compare.rs` decides between rows where that does not, `order.rs` sorts the
//! numbers by buckets, each alone. Other columns are taken in that order when [`SortedRows`] are given,
//! beside what window functions have computed of the rows in order.
//!
//! Of what has no room a worker gives parts away, each of which is sorted alone. A [`Merge`] makes one of them, block by block.

mod bound;
mod collect;
pub(crate) mod compare;
mod merge;
mod order;
mod packed;
mod prefix;
mod ranks;
mod sorted;

#[cfg(test)]
mod tests;

pub use collect::Sorting;
pub use merge::{Merge, Merged};
pub use order::{Scattered, Sorter};
pub use sorted::SortedRows;

use crate::window::{WindowSpec, form_of};
use crate::{Batch, Column, Form};

/// What is sorted by what.
#[derive(Debug, Clone)]
pub struct SortSpec {
    /// The most significant first. Without keys rows stay as they come.
    pub keys: Vec<SortKey>,
    /// How many of the first rows are given; all without it.
    pub fetch: Option<usize>,
    /// The forms of the batches' columns.
    pub forms: Vec<Form>,
    /// What is computed of all rows in their order; its columns come after the batches'.
    pub windows: Option<WindowSpec>,
}

impl SortSpec {
    /// Whether a batch has the columns that are sorted.
    pub(crate) fn has_forms_of(&self, batch: &Batch) -> bool {
        let is_fit = |(column, form): (&Column, &Form)| column.rows() == batch.rows && form.is_like(Form::of(column));
        batch.columns.len() == self.forms.len() && batch.columns.iter().zip(&self.forms).all(is_fit)
    }

    /// What is left to do with rows in their order that have the window functions' columns: they stay as they come.
    #[must_use]
    pub fn of_computed(&self) -> Self {
        let functions = self.windows.iter().flat_map(|windows| &windows.functions);
        let computed = functions.map(|function| form_of(function, &self.forms));
        let forms = self.forms.iter().copied().chain(computed).collect();
        Self { keys: Vec::new(), fetch: None, forms, windows: None }
    }
}

/// A column that rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    pub column: usize,
    pub is_descending: bool,
    pub nulls_first: bool,
}
