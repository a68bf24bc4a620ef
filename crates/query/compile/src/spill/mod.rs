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

use std::fmt;

use datafusion::common::DataFusionError;

pub(super) use file::{Part, Parts, Spiller};
pub(super) use joined::{JoinParts, JoinedBatches, no_rows, partings as partings_of_join};
pub(super) use merged::{MergedBatches, Merging};
pub(super) use regrouped::{GroupParts, RegroupedBatches, parting as parting_of_groups};
pub(super) use runs::{RunWriter, Runs, SortedRun};

/// A file that cannot be written or read: no operator would fare better.
#[derive(Debug)]
pub(super) struct SpillFailed(pub(super) DataFusionError);

impl fmt::Display for SpillFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spilled rows: {}", self.0)
    }
}

impl std::error::Error for SpillFailed {}

impl From<DataFusionError> for SpillFailed {
    fn from(error: DataFusionError) -> Self {
        Self(error)
    }
}

impl From<std::io::Error> for SpillFailed {
    fn from(error: std::io::Error) -> Self {
        Self(DataFusionError::IoError(error))
    }
}

impl From<SpillFailed> for engine::Error {
    fn from(error: SpillFailed) -> Self {
        Self::Foreign(Box::new(error))
    }
}
