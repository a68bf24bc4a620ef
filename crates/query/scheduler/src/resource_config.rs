//! Limits of the machine's resources for queries.

use std::path::PathBuf;
use std::sync::Arc;

use shards::DiskTierSettings;
use types::{Clock, Condition, SqlError, SqlResult};

use crate::operator_runtime::SpillSettings;
use crate::threads::QueryThreads;

/// Minimum memory for planning, however little operators have: the longest accepted statements need as much.
const PLANNING_MEMORY_BYTES_MIN: usize = 256 << 20;

/// Limits of the machine's resources for queries.
#[derive(Debug, Clone)]
pub struct ResourceConfig {
    /// Memory of all running operators together, in bytes. Sorts, aggregations and joins that need more spill, or fail
    /// with 53200.
    pub memory_bytes: usize,
    /// Memory of the column cache, in bytes.
    pub cache_bytes: u64,
    /// Memory of the fragment cache, which holds partial aggregates of shards, in bytes; 0 disables it.
    pub fragment_cache_bytes: u64,
    /// Disk part of the caches, if there is one.
    pub cache_disk: Option<DiskTierSettings>,
    /// Folder that operators spill to. Leftovers of an earlier run are removed at start.
    pub spill_folder: PathBuf,
    /// Maximum bytes in the spill folder.
    pub spill_bytes_max: u64,
    /// Number of threads that run operators; 0 runs them on the caller's threads, as in simulations.
    pub threads: usize,
}

impl ResourceConfig {
    /// Returns the memory for all statements that are being planned, in bytes, in addition to that of operators.
    #[must_use]
    pub fn planning_memory_bytes(&self) -> usize {
        (self.memory_bytes / 4).max(PLANNING_MEMORY_BYTES_MIN)
    }

    /// Returns the spill folder and its limit.
    #[must_use]
    pub fn spill(&self) -> SpillSettings {
        SpillSettings { folder: self.spill_folder.clone(), bytes_max: self.spill_bytes_max }
    }

    /// Returns the number of partitions of a plan: one per thread. Simulations, which have no threads, use a fixed
    /// number, so that they do the same on every machine.
    #[must_use]
    pub fn partitions(&self) -> usize {
        if self.threads == 0 { SIMULATED_PARTS } else { self.threads }
    }
}

impl Default for ResourceConfig {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            cache_bytes: 256 << 20,
            fragment_cache_bytes: 16 << 20,
            cache_disk: None,
            spill_folder: std::env::temp_dir().join("kiln-spill"),
            spill_bytes_max: 100 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Number of partitions of a plan in a simulation.
const SIMULATED_PARTS: usize = 2;

/// Starts the threads that run operators.
///
/// # Errors
/// `58030` if they cannot be started.
pub fn start_query_threads(config: &ResourceConfig, clock: &Arc<dyn Clock>) -> SqlResult<QueryThreads> {
    QueryThreads::start(config.threads, clock)
        .map_err(|error| SqlError::new(Condition::IoError, format!("could not start query threads: {error}")))
}
