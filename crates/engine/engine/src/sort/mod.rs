//! Sorting: parallel sample sort in memory, top-N, and merging of spilled runs.
//!
//! Each worker collects its batches. A [`Sorter`] takes the batches of all workers and sorts row numbers prefixed by
//! normalized keys; columns are gathered in that order when [`SortedRows`] are read (late materialization), together
//! with the columns of window functions. Rows that exceed memory are spilled as sorted runs, which a [`RunMerger`] combines
//! block by block.
//!
//! - `collect.rs`: collects the batches of one worker; `bound.rs`: skips rows that cannot be among the first N.
//! - `sorter.rs`: sorts by buckets, which are divided by sampled splitters and sorted in parallel.
//! - `packed.rs`: packs the leading keys of a row into one number; `ranks.rs`: ranks of dictionary entries, for string
//!   keys.
//! - `compare.rs`: compares rows by the keys that the packed number does not decide.
//! - `sorted.rs`: the sorted rows and their window functions.
//! - `merge.rs`: merges sorted runs; `prefix.rs`: key prefixes that make its comparisons cheap.

mod bound;
mod collect;
pub(crate) mod compare;
mod merge;
mod packed;
mod prefix;
mod ranks;
mod sorted;
mod sorter;

#[cfg(test)]
mod tests;

pub use collect::SortCollector;
pub use merge::{MergeStep, RunMerger};
pub use sorted::SortedRows;
pub use sorter::{ScatteredRows, Sorter};

use crate::window::{WindowSpec, result_form};
use crate::{Batch, Column, PhysicalType};

/// Sort specification: keys, limit, column forms and window functions.
#[derive(Debug, Clone)]
pub struct SortSpec {
    /// Sort keys, the most significant first. Without keys rows stay in arrival order.
    pub keys: Vec<SortKey>,
    /// Maximum number of rows to return, the first in order; `None` returns all.
    pub fetch: Option<usize>,
    /// Forms of the batches' columns.
    pub forms: Vec<PhysicalType>,
    /// Window functions over the sorted rows; their columns follow those of the batches.
    pub windows: Option<WindowSpec>,
}

impl SortSpec {
    /// Returns whether the columns of a batch have the specified forms.
    pub(crate) fn matches_forms(&self, batch: &Batch) -> bool {
        let is_fit = |(column, form): (&Column, &PhysicalType)| {
            column.rows() == batch.rows && form.is_compatible_with(PhysicalType::from_column(column))
        };
        batch.columns.len() == self.forms.len() && batch.columns.iter().zip(&self.forms).all(is_fit)
    }

    /// Returns the specification of sorted rows that have the window functions' columns already: it keeps their order.
    #[must_use]
    pub fn with_windows_computed(&self) -> Self {
        let functions = self.windows.iter().flat_map(|windows| &windows.functions);
        let computed = functions.map(|function| result_form(function, &self.forms));
        let forms = self.forms.iter().copied().chain(computed).collect();
        Self { keys: Vec::new(), fetch: None, forms, windows: None }
    }
}

/// Sort key: a column and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey {
    pub column: usize,
    pub is_descending: bool,
    pub nulls_first: bool,
}
