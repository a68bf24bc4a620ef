//! Grouping: rows to groups by their keys, and what is kept of each group.
//!
//! A worker has [`Groups`] of its own (`table.rs` finds a row's group by the words that `keys.rs` makes of its keys, `state.rs` adds its
//! values, `totals.rs`, `least.rs` and `moments.rs` are its loops); at the end they are merged (many groups in parts side by side, `divided.rs`), and give one row for each group. Where they have no room, what they have is taken away, to be grouped
//! again later (`partial.rs`).

mod carried;
mod divided;
mod groups;
mod keys;
mod least;
mod moments;
mod partial;
mod sets;
mod state;
mod table;
mod totals;

#[cfg(test)]
mod tests;

pub use divided::Divided;
pub use groups::{GroupRows, Groups};
pub(crate) use keys::float_word;
pub use moments::Moments;
pub use sets::GroupingSet;
pub use state::{Kept, StateSpec};
pub(crate) use state::{ints, narrowest};

/// What is grouped by what.
#[derive(Debug, Clone)]
pub struct AggregateSpec {
    /// Columns of the batches whose values make a group.
    pub keys: Vec<usize>,
    /// Columns that have one value in a group whatever its rows are.
    pub carried: Vec<usize>,
    pub states: Vec<StateSpec>,
    /// Where rows are grouped by several sets of the keys: each of them, all keys among them. Nothing is carried then, or clustered.
    pub sets: Vec<GroupingSet>,
    /// Where rows are groups of several sets, whose number is the last key: that of the set without keys, whose group is there without any row.
    pub total: Option<i64>,
    /// The key, by its place among the keys, whose values come in order: of the values in a stretch of rows none but the least and the
    /// greatest come in another.
    pub clustered: Option<usize>,
}
