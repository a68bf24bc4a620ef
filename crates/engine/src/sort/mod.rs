//! Sorting: rows that workers have collected, in the order of some columns.
//!
//! A worker collects batches in [`Sorting`], of the first few rows alone those that may be among them (`bound.rs`). A [`Sorter`] has them all:
//! `packed.rs` makes one number of the leading keys of a row, `compare.rs` decides between rows where that does not, `order.rs` sorts the
//! numbers by buckets, each alone. Other columns are taken in that order when [`SortedRows`] are given,
//! beside what window functions have computed of the rows in order.

mod bound;
mod collect;
pub(crate) mod compare;
mod order;
mod packed;
mod ranks;
mod sorted;

#[cfg(test)]
mod tests;

pub use collect::Sorting;
pub use order::{Scattered, Sorter};
pub use sorted::SortedRows;

use crate::Form;
use crate::window::WindowSpec;

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

/// A column that rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    pub column: usize,
    pub is_descending: bool,
    pub nulls_first: bool,
}
