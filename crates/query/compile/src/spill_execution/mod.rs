//! Spills to disk. A worker takes a partition for itself, from its file to the end of the pipeline.
//!
//! - `spill_file.rs` writes and reads rows in partitions by their keys.
//! - `join.rs` joins partition by partition.
//! - `group.rs` merges groups partition by partition.
//! - `sorted_runs.rs` writes sorted runs, which `merge.rs` merges in one worker.
//! - `partition_memory.rs` shares memory between the workers that read partitions.

mod group;
mod join;
mod merge;
mod partition_memory;
mod sorted_runs;
mod spill_file;

#[cfg(test)]
mod tests;

use datafusion::common::DataFusionError;
use functions::error::from_datafusion;

pub(super) use group::{SpilledGroupReader, SpilledGroups, group_partitioning};
pub(super) use join::{SpilledJoin, SpilledJoinReader, empty_table, join_partitionings};
pub(super) use merge::{MergedReader, SpilledRunMerger};
pub(super) use sorted_runs::{RunWriter, SortedRun, SortedRuns};
pub(super) use spill_file::{SpillPartition, SpillPartitions, Spiller};

/// Returns the error of a file that cannot be created, written or read.
pub(super) fn io_error(error: impl Into<DataFusionError>) -> engine::Error {
    from_datafusion(error.into()).into()
}
