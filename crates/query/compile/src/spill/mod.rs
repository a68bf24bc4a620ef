//! What has no room in memory: rows go to files in parts by their keys (`file.rs`), joins (`joined.rs`) and groups (`regrouped.rs`) are made
//! part by part. A worker takes a part for itself, from its file to the end of the pipeline. What is sorted goes to files in runs (`runs.rs`),
//! which one worker merges (`merged.rs`).

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

/// The error of a file that cannot be made, written or read.
pub(super) fn failed(error: impl Into<DataFusionError>) -> engine::Error {
    from_datafusion(error.into()).into()
}
