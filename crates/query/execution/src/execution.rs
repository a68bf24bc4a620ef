//! Assembles the services of a server that run plans.

use std::fmt;
use std::sync::Arc;

use bulk_load::Loader;
use copy::CopyService;
use dml::DmlExecutor;
use executor::Executor;
use explain::Explainer;
use external_files::ExternalFiles;
use maintenance::{CacheRetentionService, Maintenance, WriteThrottle};
use objects::Objects;
use plan::TableScanPlanner;
use scan::{FragmentCache, KeyLookup, OpenShardCache, ScanPlanner, block_cache};
use scheduler::ResourceConfig;
use shards::TierStats;
use txn::Transactions;
use types::{Clock, Random, SqlResult};

/// Services that run plans. It only holds them.
pub struct Execution {
    scans: Arc<ScanPlanner>,
    external: Arc<ExternalFiles>,
    lookup: Arc<KeyLookup>,
    loader: Loader,
    executor: Arc<Executor>,
    dml: Arc<DmlExecutor>,
    copier: Arc<CopyService>,
    explainer: Arc<Explainer>,
    throttle: Arc<WriteThrottle>,
    maintenance: Arc<Maintenance>,
    cache_retention: Arc<CacheRetentionService>,
}

impl Execution {
    /// Starts the threads, cleans the spill folder and creates the services.
    ///
    /// # Errors
    /// `58030` if the spill folder or the cache's folder cannot be used, or threads cannot be started.
    pub fn new(
        objects: Objects,
        transactions: Arc<Transactions>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        config: ResourceConfig,
    ) -> SqlResult<Arc<Self>> {
        let executor = Arc::new(Executor::start(&config, &clock)?);
        let blocks = Arc::new(block_cache(&config)?);
        let fragments = Arc::new(FragmentCache::new(config.fragment_cache_bytes));
        let opened = Arc::<OpenShardCache>::default();
        let lookup = Arc::new(KeyLookup::new(objects.clone(), Arc::clone(&opened)));
        let scans = ScanPlanner::new(objects.clone(), opened, Arc::clone(&blocks), Arc::clone(&fragments));
        let scans = Arc::new(scans);
        let external = Arc::new(ExternalFiles::new(Arc::clone(&clock), Arc::clone(&random)));
        let throttle = Arc::new(WriteThrottle::new(Arc::clone(&transactions), Arc::clone(&clock)));
        let loader = Loader::new(objects, Arc::clone(&random));
        let dml = Arc::new(DmlExecutor::new(Arc::clone(&executor), Arc::clone(&lookup), loader.clone()));
        let maintenance = Maintenance::new(
            Arc::clone(&transactions),
            Arc::clone(&scans) as Arc<dyn TableScanPlanner>,
            Arc::clone(&executor),
            loader.clone(),
            Arc::clone(&throttle),
            Arc::clone(&clock),
        );
        let cache_retention =
            CacheRetentionService::new(transactions, Arc::clone(&external), blocks, fragments, Arc::clone(&clock));
        let explainer = Explainer::new(Arc::clone(&executor), Arc::clone(&dml), Arc::clone(&clock));
        let copier = CopyService::new(Arc::clone(&executor), Arc::clone(&dml), clock, random);
        Ok(Arc::new(Self {
            scans,
            external,
            lookup,
            loader,
            executor,
            dml,
            copier: Arc::new(copier),
            explainer: Arc::new(explainer),
            throttle,
            maintenance: Arc::new(maintenance),
            cache_retention: Arc::new(cache_retention),
        }))
    }

    /// Returns the planner of table scans.
    #[must_use]
    pub fn scan_planner(&self) -> Arc<dyn TableScanPlanner> {
        Arc::clone(&self.scans) as Arc<dyn TableScanPlanner>
    }

    /// Returns the planner of table scans as its concrete type, for tests.
    #[must_use]
    pub fn scans(&self) -> &Arc<ScanPlanner> {
        &self.scans
    }

    /// Returns the use of the column cache and the fragment cache.
    #[must_use]
    pub fn cache_tiers(&self) -> Vec<TierStats> {
        self.scans.cache_tiers()
    }

    /// Returns the service that lists files of external tables.
    #[must_use]
    pub fn external(&self) -> &Arc<ExternalFiles> {
        &self.external
    }

    /// Returns the key lookup.
    #[must_use]
    pub fn lookup(&self) -> &Arc<KeyLookup> {
        &self.lookup
    }

    /// Returns the loader that writes rows into shards.
    #[must_use]
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Returns the executor of plans.
    #[must_use]
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// Returns the service that changes rows.
    #[must_use]
    pub fn dml(&self) -> &Arc<DmlExecutor> {
        &self.dml
    }

    /// Returns the service that runs COPY.
    #[must_use]
    pub fn copier(&self) -> &Arc<CopyService> {
        &self.copier
    }

    /// Returns the service that answers EXPLAIN.
    #[must_use]
    pub fn explainer(&self) -> &Arc<Explainer> {
        &self.explainer
    }

    /// Returns the throttle of writers.
    #[must_use]
    pub fn throttle(&self) -> &Arc<WriteThrottle> {
        &self.throttle
    }

    /// Returns the service that flushes and compacts tables.
    #[must_use]
    pub fn maintenance(&self) -> &Arc<Maintenance> {
        &self.maintenance
    }

    /// Returns the service that informs caches about changed tables.
    #[must_use]
    pub fn cache_retention(&self) -> &Arc<CacheRetentionService> {
        &self.cache_retention
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").finish_non_exhaustive()
    }
}
