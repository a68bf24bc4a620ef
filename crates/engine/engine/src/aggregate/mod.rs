//! Hash aggregation with pre-aggregation per worker, grouping sets, partitioned merging and spilling.
//!
//! Each worker pre-aggregates its rows in [`Groups`] of its own. At the end the workers' groups are merged, either into
//! one table or, where workers have flushed their tables, radix partition by radix partition in parallel.
//!
//! - `groups.rs`: the aggregation of one worker, and its result rows.
//! - `keys.rs`: group keys encoded as 64-bit words.
//! - `table.rs`: from the words of a key to the number of its group, by a direct index; `hash_table.rs`: the hash table for
//!   other keys.
//! - `state.rs`: aggregate states of all groups; `sums.rs` (counts and sums), `sum256.rs`, `min_max.rs` (MIN and MAX)
//!   and `moments.rs` (variance) are their loops; `carried.rs`: values that functionally depend on the keys.
//! - `reduction.rs`: the decision to flush a table that does not reduce rows; `flushed.rs`: flushed groups in radix
//!   partitions.
//! - `merge.rs`: merges the groups of one worker into those of another.
//! - `unify.rs`: unifies the string dictionaries of the workers; `partitioned.rs`: merges flushed groups partition by
//!   partition.
//! - `sets.rs`: grouping sets in one table; `set_evaluation.rs`: grouping sets partition by partition.
//! - `drain.rs`: drains groups to spill files, and the specification that aggregates them a second time.
//! - `compact.rs`: groups without their table, for the cache of aggregation results.

mod carried;
mod compact;
mod drain;
mod flushed;
mod groups;
mod hash_table;
mod keys;
mod merge;
mod min_max;
mod moments;
mod partitioned;
mod reduction;
mod set_evaluation;
mod sets;
mod state;
mod sum256;
mod sums;
mod table;
mod unify;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod timing;

pub use compact::CompactGroups;
pub use flushed::{FlushedGroups, FlushedRun};
pub use groups::{GroupRows, Groups};
pub(crate) use keys::encode_float;
pub use moments::Moments;
pub use partitioned::PartitionedGroups;
pub use set_evaluation::{SetDerivation, SetEvaluation, SetPartition};
pub use sets::{GroupingSet, SetGroups};
pub use state::{AggregateKind, StateSpec};
pub(crate) use state::{int_column, narrowest_data};
pub use sum256::from_binary as sums256_from_binary;
pub(crate) use sum256::{square, to_binary as sums256_to_binary};
pub(crate) use sums::{checked_float_add, numeric_overflow};
pub use unify::{StringShard, StringUnifier, WorkerGroups};

use crate::PhysicalType;

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
    pub grand_total_id: Option<i64>,
    /// Index into `keys` of the key that the input is clustered by: of the values in one run of rows only the smallest
    /// and the largest may occur in other runs.
    pub clustered: Option<usize>,
    /// Forms of the keys' types, in the order of `keys`; if empty, the first batch decides. Keys of [`PhysicalType::WideInts`] are
    /// encoded as two words each; in keys of [`PhysicalType::Ints`] a 128-bit number is an error.
    pub key_forms: Vec<PhysicalType>,
}
