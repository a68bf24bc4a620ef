//! Hash aggregation with pre-aggregation per worker, grouping sets, partitioned merging and spilling.
//!
//! Each worker pre-aggregates its rows in [`Groups`] of its own. At the end the workers' groups are merged, either into
//! one table or, where workers have flushed their tables, radix partition by radix partition in parallel.
//!
//! - `groups.rs`: the aggregation of one worker, and its result rows.
//! - `key_encoding.rs`: group keys encoded as 64-bit words.
//! - `group_table.rs`: from the words of a key to the number of its group, by a direct index; `hash_table.rs`: the hash
//!   table for other keys.
//! - `aggregate_state.rs`: aggregate states of all groups; `sums.rs` (counts and sums), `sum256.rs`, `min_max.rs` (MIN
//!   and MAX) and `variance_moments.rs` (variance) are their loops; `carried_columns.rs`: values that functionally
//!   depend on the keys.
//! - `flush_decision.rs`: the decision to flush a table that does not reduce rows; `flushed_groups.rs`: flushed groups
//!   in radix partitions.
//! - `merge_groups.rs`: merges the groups of one worker into those of another.
//! - `unify_strings.rs`: unifies the string dictionaries of the workers; `partitioned_merge.rs`: merges flushed groups
//!   partition by partition.
//! - `grouping_sets.rs`: grouping sets in one table; `grouping_set_evaluation.rs`: grouping sets partition by
//!   partition.
//! - `drain_groups.rs`: drains groups to spill files, and the specification that aggregates them a second time.
//! - `compact_groups.rs`: groups without their table, for the cache of aggregation results.

mod aggregate_state;
mod carried_columns;
mod compact_groups;
mod drain_groups;
mod flush_decision;
mod flushed_groups;
mod group_table;
mod grouping_set_evaluation;
mod grouping_sets;
mod groups;
mod hash_table;
mod key_encoding;
mod merge_groups;
mod min_max;
mod partitioned_merge;
mod sum256;
mod sums;
mod unify_strings;
mod variance_moments;

#[cfg(test)]
mod cost_benchmark;
#[cfg(test)]
mod tests;

pub use aggregate_state::{AggregateKind, StateSpec};
pub(crate) use aggregate_state::{int_column, narrowest_data};
pub use compact_groups::CompactGroups;
pub use flushed_groups::{FlushedGroups, FlushedRun};
pub use grouping_set_evaluation::{SetDerivation, SetEvaluation, SetPartition};
pub use grouping_sets::{GroupingSet, SetGroups};
pub use groups::{GroupRows, Groups};
pub(crate) use key_encoding::encode_float;
pub use partitioned_merge::PartitionedGroups;
pub use sum256::from_binary as sums256_from_binary;
pub(crate) use sum256::{square, to_binary as sums256_to_binary};
pub(crate) use sums::{checked_float_add, numeric_overflow};
pub use unify_strings::{StringUnifier, UnifiedStrings, WorkerGroups};
pub use variance_moments::Moments;

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
    /// Physical types of the keys, in the order of `keys`; if empty, the first batch decides. Keys of
    /// [`PhysicalType::WideInts`] are encoded as two words each; in keys of [`PhysicalType::Ints`] a 128-bit number is
    /// an error.
    pub key_types: Vec<PhysicalType>,
}
