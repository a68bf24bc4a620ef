//! The service that flushes fresh rows and compacts shards.

use std::sync::Arc;

use bulk_load::Loader;
use executor::Executor;
use plan::TableScanPlanner;
use tokio::sync::Mutex;
use txn::Transactions;
use types::Clock;

use crate::write_throttle::WriteThrottle;

/// Service that flushes fresh rows to shards and compacts shards, one table at a time.
#[derive(Debug)]
pub struct Maintenance {
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) scans: Arc<dyn TableScanPlanner>,
    pub(crate) executor: Arc<Executor>,
    pub(crate) loader: Loader,
    pub(crate) throttle: Arc<WriteThrottle>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Lock held while a table is flushed or compacted.
    pub(crate) maintenance_lock: Mutex<()>,
}

impl Maintenance {
    /// Creates a service that reads rows with `scans` on the threads of `executor` and writes them with `loader`.
    #[must_use]
    pub fn new(
        transactions: Arc<Transactions>,
        scans: Arc<dyn TableScanPlanner>,
        executor: Arc<Executor>,
        loader: Loader,
        throttle: Arc<WriteThrottle>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { transactions, scans, executor, loader, throttle, clock, maintenance_lock: Mutex::default() }
    }
}
