//! Spills to disk. A worker takes a partition for itself, from its file to the end of the pipeline.
//!
//! - `file.rs` writes and reads rows in partitions by their keys.
//! - `join.rs` joins partition by partition.
//! - `group.rs` merges groups partition by partition.
//! - `runs.rs` writes sorted runs, which `merge.rs` merges in one worker.
//! - `partition_memory.rs` shares memory between the workers that read partitions.

mod file;
mod group;
mod join;
mod merge;
mod partition_memory;
mod runs;

#[cfg(test)]
mod tests;

use datafusion::common::DataFusionError;
use functions::error::from_datafusion;

pub(super) use file::{SpillPartition, SpillPartitions, Spiller};
pub(super) use group::{SpilledGroupReader, SpilledGroups, group_partitioning as parting_of_groups};
pub(super) use join::{SpilledJoin, SpilledJoinReader, empty_table, join_partitionings as partings_of_join};
pub(super) use merge::{MergedReader, SpilledRunMerger};
pub(super) use runs::{RunWriter, SortedRun, SortedRuns};

/// Returns the error of a file that cannot be created, written or read.
pub(super) fn io_error(error: impl Into<DataFusionError>) -> engine::Error {
    from_datafusion(error.into()).into()
}
