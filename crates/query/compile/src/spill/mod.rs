//! Spills to disk. A worker takes a partition for itself, from its file to the end of the pipeline.
//!
//! - `file.rs` writes and reads rows in partitions by their keys.
//! - `joined.rs` joins partition by partition.
//! - `regrouped.rs` merges groups partition by partition.
//! - `runs.rs` writes sorted runs, which `merged.rs` merges in one worker.
//! - `room.rs` shares memory between the workers that read partitions.

mod file;
mod joined;
mod merged;
mod regrouped;
mod room;
mod runs;

#[cfg(test)]
mod tests;

use datafusion::common::DataFusionError;
use functions::error::from_datafusion;

pub(super) use file::{Part, Parts, Spiller};
pub(super) use joined::{JoinParts, JoinedBatches, no_rows, partings as partings_of_join};
pub(super) use merged::{MergedBatches, Merging};
pub(super) use regrouped::{GroupParts, RegroupedBatches, parting as parting_of_groups};
pub(super) use runs::{RunWriter, Runs, SortedRun};

/// Returns the error of a file that cannot be created, written or read.
pub(super) fn failed(error: impl Into<DataFusionError>) -> engine::Error {
    from_datafusion(error.into()).into()
}
