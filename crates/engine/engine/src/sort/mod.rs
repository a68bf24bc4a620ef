//! Sorting: parallel sample sort in memory, top-N, and merging of spilled runs.
//!
//! Each worker collects its batches. A [`Sorter`] takes the batches of all workers and sorts row numbers prefixed by
//! normalized keys; columns are gathered in that order when [`SortedRows`] are read (late materialization), together
//! with the columns of window functions. Rows that exceed memory are spilled as sorted runs, which a [`RunMerger`]
//! combines block by block.
//!
//! - `sort_collector.rs`: collects the batches of one worker; `top_n_bound.rs`: skips rows that cannot be among the
//!   first N.
//! - `sample_sort.rs`: sorts by buckets, which are divided by sampled splitters and sorted in parallel.
//! - `packed_keys.rs`: packs the leading keys of a row into one number; `dictionary_ranks.rs`: ranks of dictionary
//!   entries, for string keys.
//! - `compare.rs`: compares rows by the keys that the packed number does not decide.
//! - `sorted_rows.rs`: the sorted rows and their window functions.
//! - `merge_runs.rs`: merges sorted runs; `key_prefix.rs`: key prefixes that make its comparisons cheap.

pub(crate) mod compare;
mod dictionary_ranks;
mod key_prefix;
mod merge_runs;
mod packed_keys;
mod sample_sort;
mod sort_collector;
mod sorted_rows;
mod top_n_bound;

#[cfg(test)]
mod tests;

pub use merge_runs::{MergeStep, RunMerger};
pub use sample_sort::{ScatteredRows, Sorter};
pub use sort_collector::SortCollector;
pub use sorted_rows::SortedRows;

use crate::window::{WindowSpec, result_type};
use crate::{Batch, Column, PhysicalType};

/// Sort specification: keys, limit, column types and window functions.
#[derive(Debug, Clone)]
pub struct SortSpec {
    /// Sort keys, the most significant first. Without keys rows stay in arrival order.
    pub keys: Vec<SortKey>,
    /// Maximum number of rows to return, the first in order; `None` returns all.
    pub fetch: Option<usize>,
    /// Physical types of the batches' columns.
    pub column_types: Vec<PhysicalType>,
    /// Window functions over the sorted rows; their columns follow those of the batches.
    pub windows: Option<WindowSpec>,
}

impl SortSpec {
    /// Returns whether the columns of a batch have the specified physical types.
    pub(crate) fn matches_column_types(&self, batch: &Batch) -> bool {
        let is_fit = |(column, form): (&Column, &PhysicalType)| {
            column.rows() == batch.rows && form.is_compatible_with(PhysicalType::from_column(column))
        };
        batch.columns.len() == self.column_types.len() && batch.columns.iter().zip(&self.column_types).all(is_fit)
    }

    /// Returns the specification of sorted rows that have the window functions' columns already: it keeps their order.
    #[must_use]
    pub fn with_windows_computed(&self) -> Self {
        let functions = self.windows.iter().flat_map(|windows| &windows.functions);
        let computed = functions.map(|function| result_type(function, &self.column_types));
        let forms = self.column_types.iter().copied().chain(computed).collect();
        Self { keys: Vec::new(), fetch: None, column_types: forms, windows: None }
    }
}

/// Sort key: a column and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    pub column: usize,
    pub is_descending: bool,
    pub nulls_first: bool,
}
