//! The service that settles fresh rows and compacts shards.

use std::sync::Arc;

use bulk_load::Loader;
use executor::Executor;
use plan::PlanScan;
use tokio::sync::Mutex;
use txn::Transactions;
use types::Clock;

use crate::pace::WriteThrottle;

/// Settles fresh rows and compacts shards, one table at a time.
#[derive(Debug)]
pub struct Maintenance {
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) scans: Arc<dyn PlanScan>,
    pub(crate) executor: Arc<Executor>,
    pub(crate) loader: Loader,
    pub(crate) throttle: Arc<WriteThrottle>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Held while a table settles or is compacted.
    pub(crate) turn: Mutex<()>,
}

impl Maintenance {
    /// A service that reads rows by `scans` on threads of `executor` and writes them by `loader`.
    #[must_use]
    pub fn new(
        transactions: Arc<Transactions>,
        scans: Arc<dyn PlanScan>,
        executor: Arc<Executor>,
        loader: Loader,
        throttle: Arc<WriteThrottle>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { transactions, scans, executor, loader, throttle, clock, turn: Mutex::default() }
    }
}
