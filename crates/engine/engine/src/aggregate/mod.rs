//! Hash aggregation with pre-aggregation per worker, grouping sets, partitioned merging and spilling.
//!
//! Each worker pre-aggregates its rows in [`Groups`] of its own. At the end the workers' groups are merged, either into
//! one table or, where workers have flushed their tables, radix partition by radix partition in parallel.
//!
//! - `groups.rs`: the aggregation of one worker, and its result rows.
//! - `keys.rs`: group keys encoded as 64-bit words.
//! - `table.rs`: from the words of a key to the number of its group, by a direct index; `hashed.rs`: the hash table for
//!   other keys.
//! - `state.rs`: aggregate states of all groups; `totals.rs` (counts and sums), `sum256.rs`, `least.rs` (MIN and MAX)
//!   and `moments.rs` (variance) are their loops; `carried.rs`: values that functionally depend on the keys.
//! - `reduction.rs`: the decision to flush a table that does not reduce rows; `pieces.rs`: flushed groups in radix
//!   partitions.
//! - `merge.rs`: merges the groups of one worker into those of another.
//! - `common.rs`: unifies the string dictionaries of the workers; `divided.rs`: merges flushed groups partition by
//!   partition.
//! - `sets.rs`: grouping sets in one table; `levels.rs`: grouping sets partition by partition.
//! - `partial.rs`: drains groups to spill files, and the specification that aggregates them a second time.
//! - `compact.rs`: groups without their table, for the cache of aggregation results.

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

/// Aggregation specification: group keys, carried columns, aggregate states and grouping sets.
#[derive(Debug, Clone, Default)]
pub struct AggregateSpec {
    /// Group keys, as columns of the batches.
    pub keys: Vec<usize>,
    /// Columns that functionally depend on the keys: they are not hashed, the value of a group's first row is carried
    /// along.
    pub carried: Vec<usize>,
    /// Aggregate states of each group.
    pub states: Vec<StateSpec>,
    /// Grouping sets, among them the set of all keys; empty for a plain GROUP BY. With sets nothing is carried and no
    /// key is clustered.
    pub sets: Vec<GroupingSet>,
    /// Id of the grand total's set, where input rows are already grouped by grouping sets and the last key is the id of
    /// a row's set. The grand total is a result row even of no input rows.
    pub total: Option<i64>,
    /// Index into `keys` of the key that the input is clustered by: of the values in one run of rows only the smallest
    /// and the largest may occur in other runs.
    pub clustered: Option<usize>,
    /// Forms of the keys' types, in the order of `keys`; if empty, the first batch decides. Keys of [`Form::Wide`] are
    /// encoded as two words each; in keys of [`Form::Ints`] a 128-bit number is an error.
    pub key_forms: Vec<Form>,
}
