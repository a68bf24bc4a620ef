//! What a server holds to run plans.

use std::fmt;
use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use objects::Objects;
use plan::PlanScan;
use scan::{FragmentCache, KeyLookup, OpenedShards, ScanPlanner, block_cache};
use scheduler::{Config, PlanningThreads, Threads, bound_values, keep_spill_room, query_threads, runtime};
use shards::{BlockCache, TierUse};
use txn::Transactions;
use types::{Clock, Random, Reserve, SqlResult};

use crate::external::ExternalFiles;
use crate::settle::WriteThrottle;

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

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("objects", &self.objects).finish_non_exhaustive()
    }
}
