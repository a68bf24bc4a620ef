//! Tells the block cache and the fragment cache which shards exist and which retention policies tables have.

use std::sync::Arc;
use std::time::Duration;

use catalog::CatalogState;
use external_files::ExternalFiles;
use futures::future::BoxFuture;
use scan::FragmentCache;
use shards::{BlockCache, RetentionPolicy};
use txn::Transactions;
use types::{Clock, CommitTs};

/// Interval between checks of the catalog.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Background service that keeps the caches' view of shards and retention policies up to date.
#[derive(Debug)]
pub struct CacheRetentionService {
    transactions: Arc<Transactions>,
    external: Arc<ExternalFiles>,
    blocks: Arc<BlockCache>,
    fragments: Arc<FragmentCache>,
    clock: Arc<dyn Clock>,
}

impl CacheRetentionService {
    /// Creates the service for the block cache and the fragment cache.
    #[must_use]
    pub fn new(
        transactions: Arc<Transactions>,
        external: Arc<ExternalFiles>,
        blocks: Arc<BlockCache>,
        fragments: Arc<FragmentCache>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { transactions, external, blocks, fragments, clock }
    }

    /// Updates the caches after each change of the catalog, for as long as the server runs.
    pub fn run(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.run_unboxed())
    }

    async fn run_unboxed(&self) {
        let mut looked_at = None;
        loop {
            if let Some(retention) = self.changed_retention(&mut looked_at) {
                let retention = Arc::new(retention);
                self.blocks.apply_retention(&retention);
                self.fragments.apply_retention(&retention);
            }
            self.clock.sleep(CHECK_INTERVAL).await;
        }
    }

    /// Returns the shards and policies of all tables, files of external tables included; `None` if since `looked_at`
    /// nothing was committed and no external table's files changed.
    fn changed_retention(&self, looked_at: &mut Option<(CommitTs, u64)>) -> Option<RetentionPolicy> {
        let snapshot = self.transactions.current();
        let now = (snapshot.ts, self.external.cache().listing_changes());
        let is_new = looked_at.replace(now) != Some(now);
        is_new.then(|| {
            let mut retention = collect_retention(&snapshot.state);
            let external = snapshot.state.tables().filter(|table| table.external.is_some());
            self.external.cache().add_retained_shards(&mut retention, &external.map(|table| table.oid).collect());
            retention
        })
    }
}

/// Collects the shards of all tables, and the policies of tables whose policy is not the default.
fn collect_retention(state: &CatalogState) -> RetentionPolicy {
    let shards = state.tables().flat_map(|table| state.shards(table.oid).shards.ids()).collect();
    let special = state.tables().filter(|table| !table.cache.is_normal());
    RetentionPolicy {
        live_shards: shards,
        policies: special.map(|table| (table.oid, table.cache)).collect(),
        ..RetentionPolicy::default()
    }
}
