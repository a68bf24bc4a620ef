//! What a server holds to run plans.

use std::fmt;
use std::sync::Arc;

use executor::Executor;
use objects::Objects;
use plan::PlanScan;
use scan::{FragmentCache, KeyLookup, OpenedShards, ScanPlanner, block_cache};
use scheduler::Config;
use shards::{BlockCache, TierUse};
use txn::Transactions;
use types::{Clock, Random, SqlResult};

use crate::external::ExternalFiles;
use crate::settle::WriteThrottle;
use crate::write::Loader;

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
    pub(crate) loader: Loader,
    /// One table settles or is compacted at a time.
    pub(crate) settling: tokio::sync::Mutex<()>,
    pub(crate) throttle: WriteThrottle,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) executor: Arc<Executor>,
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
        let executor = Arc::new(Executor::start(&config, &clock)?);
        let blocks = block_cache(&config)?;
        let opened = Arc::<OpenedShards>::default();
        Ok(Arc::new(Self {
            lookup: KeyLookup::new(objects.clone(), Arc::clone(&opened)),
            loader: Loader::new(objects.clone(), Arc::clone(&random)),
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
            executor,
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

    /// What begins loads.
    #[must_use]
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// What runs plans.
    #[must_use]
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// Where chance comes from.
    #[must_use]
    pub fn random(&self) -> &Arc<dyn Random> {
        &self.random
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("objects", &self.objects).finish_non_exhaustive()
    }
}
