//! What a server holds to run plans.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use objects::Objects;
use plan::PlanScan;
use scan::{FragmentCache, KeyLookup, OpenedShards, ScanPlanner};
use scheduler::{PlanningThreads, SpillSettings, Threads, bound_values, keep_spill_room, runtime};
use shards::{BlockCache, CacheDisk, TierUse};
use txn::Transactions;
use types::{Clock, Condition, Random, Reserve, SqlError, SqlResult};

use crate::external::ExternalFiles;
use crate::settle::WriteThrottle;

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
    fn planning_memory_bytes(&self) -> usize {
        (self.memory_bytes / 4).max(PLANNING_MEMORY_BYTES_MIN)
    }

    /// The spill folder of operators, and its limit.
    pub(crate) fn spill(&self) -> SpillSettings {
        SpillSettings { folder: self.spill_folder.clone(), bytes_max: self.spill_bytes_max }
    }

    /// Parts of one plan that run at the same time: one per thread. Simulations, which have none, divide rows as well, and alike on every machine.
    fn parts(&self) -> usize {
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

/// Runs the plans of a server.
pub struct Execution {
    pub(crate) objects: Objects,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) opened: Arc<OpenedShards>,
    pub(crate) external: ExternalFiles,
    /// What scans have read lately.
    pub(crate) blocks: Arc<BlockCache>,
    /// What queries have made of shards lately.
    pub(crate) fragments: Arc<FragmentCache>,
    pub(crate) lookup: KeyLookup,
    /// One table settles or is compacted at a time.
    pub(crate) settling: tokio::sync::Mutex<()>,
    pub(crate) throttle: WriteThrottle,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    /// For what runs without a worker.
    pub(crate) threads: Arc<Threads>,
    parts: usize,
    cores: usize,
    memory_bytes: usize,
    /// For what comes before statements run.
    planning: Arc<PlanningThreads>,
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
        bound_values(config.memory_bytes, config.cache_bytes + config.fragment_cache_bytes);
        let runtime = runtime(config.memory_bytes, &config.spill())?;
        let threads = Arc::new(query_threads(&config, &clock)?);
        let planning = Arc::new(PlanningThreads::new(config.threads, config.planning_memory_bytes(), &clock));
        let blocks = block_cache(&config)?;
        let opened = Arc::<OpenedShards>::default();
        Ok(Arc::new(Self {
            lookup: KeyLookup::new(objects.clone(), Arc::clone(&opened)),
            objects,
            opened,
            external: ExternalFiles::new(Arc::clone(&clock), Arc::clone(&random)),
            blocks: Arc::new(blocks),
            fragments: Arc::new(FragmentCache::new(config.fragment_cache_bytes)),
            settling: tokio::sync::Mutex::default(),
            throttle: WriteThrottle::new(Arc::clone(&transactions), Arc::clone(&clock)),
            transactions,
            clock,
            random,
            threads,
            parts: config.parts(),
            cores: config.threads,
            memory_bytes: config.memory_bytes,
            planning,
            spill_bytes_max: config.spill_bytes_max,
            runtime,
        }))
    }

    /// What plans the scans of tables.
    #[must_use]
    pub fn scan_planner(&self) -> Arc<dyn PlanScan> {
        Arc::new(self.scans())
    }

    pub(crate) fn scans(&self) -> ScanPlanner {
        let (opened, blocks) = (Arc::clone(&self.opened), Arc::clone(&self.blocks));
        ScanPlanner::new(self.objects.clone(), opened, blocks, Arc::clone(&self.fragments))
    }

    /// How the caches of columns and of groups are used.
    #[must_use]
    pub fn cache_tiers(&self) -> Vec<TierUse> {
        self.scans().cache_tiers()
    }

    /// The files of external tables.
    #[must_use]
    pub fn external(&self) -> &ExternalFiles {
        &self.external
    }

    /// The throttle of writers.
    #[must_use]
    pub fn throttle(&self) -> &WriteThrottle {
        &self.throttle
    }

    /// The lookup of rows by key.
    #[must_use]
    pub fn lookup(&self) -> &KeyLookup {
        &self.lookup
    }

    /// The threads that plan.
    #[must_use]
    pub fn planning(&self) -> &Arc<PlanningThreads> {
        &self.planning
    }

    /// The threads that run operators.
    #[must_use]
    pub fn threads(&self) -> &Arc<Threads> {
        &self.threads
    }

    /// The number of cores that these are for.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Memory of all running operators together.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Parts of one plan that run at the same time where no setting says how many.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Where chance comes from.
    #[must_use]
    pub fn random(&self) -> &Arc<dyn Random> {
        &self.random
    }

    /// Lets operators leave the reserve of the spill folder's disk as it is, for as long as the server runs: who needs more fails with 53100.
    pub async fn keep_spill_room(&self, reserve: Reserve) {
        keep_spill_room(&self.runtime.disk_manager, &reserve, || self.spill_bytes_max, &self.clock).await;
    }

    /// Memory and spill space, shared by all plans.
    #[must_use]
    pub fn runtime(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.runtime)
    }
}

/// The threads that run operators.
///
/// # Errors
/// `58030` where they cannot be started.
pub(crate) fn query_threads(config: &Config, clock: &Arc<dyn Clock>) -> SqlResult<Threads> {
    Threads::start(config.threads, clock)
        .map_err(|error| SqlError::new(Condition::IoError, format!("could not start threads: {error}")))
}

/// The cache of columns, with what an earlier run has left on its disk.
///
/// # Errors
/// `58030` where its folder cannot be used.
pub(crate) fn block_cache(config: &Config) -> SqlResult<BlockCache> {
    let Some(disk) = &config.cache_disk else { return Ok(BlockCache::new(config.cache_bytes)) };
    BlockCache::with_disk(config.cache_bytes, disk.clone())
        .map_err(|error| SqlError::new(Condition::IoError, format!("could not use the cache's folder: {error}")))
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("objects", &self.objects).finish_non_exhaustive()
    }
}
