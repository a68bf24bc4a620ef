//! Grouping: rows to groups by their keys, and what is kept of each group.
//!
//! A worker has [`Groups`] of its own (`table.rs` finds a row's group by the words that `keys.rs` makes of its keys, `state.rs` adds its
//! values, `totals.rs` and `least.rs` are its loops); at the end they are merged, and give one row for each group.

mod groups;
mod keys;
mod least;
mod state;
mod table;
mod totals;

#[cfg(test)]
mod tests;

pub use groups::{GroupRows, Groups};
pub use state::{Kept, StateSpec};

/// What is grouped by what.
#[derive(Debug, Clone)]
pub struct AggregateSpec {
    /// Columns of the batches whose values make a group.
    pub keys: Vec<usize>,
    pub states: Vec<StateSpec>,
}
