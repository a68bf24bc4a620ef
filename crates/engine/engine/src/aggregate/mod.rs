//! Grouping: rows to groups by their keys, and what is kept of each group.
//!
//! A worker has [`Groups`] of its own (`table.rs` and `hashed.rs` find a row's group by the words that `keys.rs` makes of its keys, `state.rs` adds its
//! values, `totals.rs`, `least.rs` and `moments.rs` are its loops); at the end they are merged (`merge.rs`), and give one row for each group. Where a table makes rows no fewer (`reduction.rs`) its groups are put aside
//! by parts of their keys (`pieces.rs`), and these are put together part by part, side by side (`divided.rs`, `common.rs`). Where they have no
//! room, what they have is taken away, to be grouped again later (`partial.rs`). What is to be used again is kept without its table (`compact.rs`).

mod carried;
mod common;
mod compact;
mod divided;
mod groups;
mod hashed;
mod keys;
mod least;
mod levels;
mod merge;
mod moments;
mod partial;
mod pieces;
mod reduction;
mod sets;
mod state;
mod sum256;
mod table;
mod totals;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing;

pub use common::{Common, Shard, Sorted};
pub use compact::CompactGroups;
pub use divided::Divided;
pub use groups::{GroupRows, Groups};
pub(crate) use keys::float_word;
pub use levels::{Coarser, Levels, PartOfSet};
pub use moments::Moments;
pub use pieces::{Aside, Piece};
pub use sets::{GroupingSet, Level};
pub use state::{Kept, StateSpec};
pub(crate) use state::{ints, narrowest};
pub use sum256::from_binary as sums256_from_binary;
pub(crate) use sum256::{square, to_binary as sums256_to_binary};
pub(crate) use totals::{float_sum, numeric_overflow};

use crate::Form;

/// What is grouped by what.
#[derive(Debug, Clone, Default)]
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
    /// Forms of the keys' types, in their order; without them keys take the forms of the first batch. Values of [`Form::Wide`] have two words
    /// each; in keys of [`Form::Ints`] a 128-bit number is an error.
    pub key_forms: Vec<Form>,
}
