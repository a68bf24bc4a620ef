//! How much of a machine queries may use.

use std::path::PathBuf;
use std::sync::Arc;

use shards::CacheDisk;
use types::{Clock, Condition, SqlError, SqlResult};

use crate::runtime::SpillSettings;
use crate::threads::Threads;

/// Memory of planning at least, however little operators have: the longest statements that are answered take as much.
const PLANNING_MEMORY_BYTES_MIN: usize = 256 << 20;

/// How much of the machine queries may use.
#[derive(Debug, Clone)]
pub struct Config {
    /// Memory of all running operators together: sorts, aggregates and joins that need more spill, or fail with 53200.
    pub memory_bytes: usize,
    /// Memory of columns that scans have read, kept as blocks.
    pub cache_bytes: u64,
    /// Memory of groups that queries have made of shards; with none they are not kept.
    pub fragment_cache_bytes: u64,
    /// Where more of them is kept than there is memory for, if anywhere.
    pub cache_disk: Option<CacheDisk>,
    /// Where operators spill; what is left there from an earlier run is removed.
    pub spill_folder: PathBuf,
    /// The most that lies in the spill folder at any moment.
    pub spill_bytes_max: u64,
    /// Threads that run operators; with none, those of the caller do, as in simulations.
    pub threads: usize,
}

impl Config {
    /// Memory of all statements that are planned at the same time, beside that of operators.
    #[must_use]
    pub fn planning_memory_bytes(&self) -> usize {
        (self.memory_bytes / 4).max(PLANNING_MEMORY_BYTES_MIN)
    }

    /// The spill folder of operators, and its limit.
    #[must_use]
    pub fn spill(&self) -> SpillSettings {
        SpillSettings { folder: self.spill_folder.clone(), bytes_max: self.spill_bytes_max }
    }

    /// Parts of one plan that run at the same time: one per thread. Simulations, which have none, divide rows as well, and alike on every machine.
    #[must_use]
    pub fn parts(&self) -> usize {
        if self.threads == 0 { SIMULATED_PARTS } else { self.threads }
    }
}

impl Default for Config {
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

/// Parts of a plan in a simulation.
const SIMULATED_PARTS: usize = 2;

/// The threads that run operators.
///
/// # Errors
/// `58030` where they cannot be started.
pub fn query_threads(config: &Config, clock: &Arc<dyn Clock>) -> SqlResult<Threads> {
    Threads::start(config.threads, clock)
        .map_err(|error| SqlError::new(Condition::IoError, format!("could not start threads: {error}")))
}
