//! What a server holds to run plans.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use objects::Objects;
use planner::PlanScan;
use shards::{BlockCache, CacheDisk, TierUse};
use txn::Transactions;
use types::{Clock, Condition, Random, SqlError, SqlResult};

use crate::external::KnownFiles;
use crate::lookup::{KeyCache, SettledRows};
use crate::runtime::runtime;
use crate::scan::{OpenedShards, ScanPlanner};
use crate::settle::Paces;
use crate::threads::Threads;
use crate::workers::EmbeddedWorkers;

/// How much of the machine queries may use.
#[derive(Debug, Clone)]
pub struct Config {
    /// Memory of all running operators together: sorts, aggregates and joins that need more spill, or fail with 53200.
    pub memory_bytes: usize,
    /// Memory of columns that scans have read, kept as blocks.
    pub cache_bytes: u64,
    /// Where more of them is kept than there is memory for, if anywhere.
    pub cache_disk: Option<CacheDisk>,
    /// Where operators spill; what is left there from an earlier run is removed.
    pub spill_folder: PathBuf,
    /// The most that lies in the spill folder at any moment.
    pub spill_bytes_max: u64,
    /// Threads that run operators; with none, those of the caller do, as in simulations.
    pub threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            cache_bytes: 256 << 20,
            cache_disk: None,
            spill_folder: std::env::temp_dir().join("kiln-spill"),
            spill_bytes_max: 100 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Runs the plans of a server.
pub struct Execution {
    pub(crate) objects: Objects,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) opened: Arc<OpenedShards>,
    /// Files of external tables that were opened lately.
    pub(crate) files: KnownFiles,
    /// What scans have read lately.
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) keys: KeyCache,
    pub(crate) settled: SettledRows,
    /// One table settles or is compacted at a time.
    pub(crate) settling: tokio::sync::Mutex<()>,
    pub(crate) paces: Paces,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// For what runs without a worker.
    pub(crate) threads: Arc<Threads>,
    workers: Arc<EmbeddedWorkers>,
    pub(crate) spill_bytes_max: u64,
    runtime: Arc<RuntimeEnv>,
}

impl Execution {
    /// Starts the threads and cleans the spill folder.
    ///
    /// # Errors
    /// `58030` where the spill folder or the cache's cannot be used, or threads cannot be started.
    pub fn new(
        objects: Objects,
        transactions: Arc<Transactions>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        config: Config,
    ) -> SqlResult<Arc<Self>> {
        let runtime = runtime(&config)?;
        let threads = Threads::start(config.threads, &clock)
            .map_err(|error| SqlError::new(Condition::IoError, format!("could not start threads: {error}")))?;
        let threads = Arc::new(threads);
        let (cores, memory) = (config.threads, Arc::clone(&runtime.memory_pool));
        let (own, clocks, chance) = (Arc::clone(&threads), Arc::clone(&clock), Arc::clone(&random));
        let workers = EmbeddedWorkers::new(own, cores, memory, config.memory_bytes as u64, clocks, chance);
        let blocks = match config.cache_disk {
            None => BlockCache::new(config.cache_bytes),
            Some(disk) => BlockCache::with_disk(config.cache_bytes, disk).map_err(|error| {
                SqlError::new(Condition::IoError, format!("could not use the cache's folder: {error}"))
            })?,
        };
        Ok(Arc::new(Self {
            objects,
            transactions,
            opened: Arc::default(),
            files: KnownFiles::default(),
            blocks: Arc::new(blocks),
            keys: KeyCache::default(),
            settled: SettledRows::default(),
            settling: tokio::sync::Mutex::default(),
            paces: Paces::default(),
            clock,
            random,
            threads,
            workers,
            spill_bytes_max: config.spill_bytes_max,
            runtime,
        }))
    }

    /// What plans the scans of tables.
    #[must_use]
    pub fn scan_planner(&self) -> Arc<dyn PlanScan> {
        Arc::new(ScanPlanner::new(self.objects.clone(), Arc::clone(&self.opened), Arc::clone(&self.blocks)))
    }

    /// How the cache of columns is used.
    #[must_use]
    pub fn cache_tiers(&self) -> Vec<TierUse> {
        self.blocks.tiers()
    }

    /// The workers of this process.
    #[must_use]
    pub fn workers(&self) -> &Arc<EmbeddedWorkers> {
        &self.workers
    }

    /// Memory and spill space, shared by all plans.
    #[must_use]
    pub fn runtime(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.runtime)
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("objects", &self.objects).finish_non_exhaustive()
    }
}
