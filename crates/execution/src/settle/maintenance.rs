//! What looks after the rows of tables.

use std::sync::Arc;

use bulk_load::Loader;
use executor::Executor;
use plan::PlanScan;
use tokio::sync::Mutex;
use txn::Transactions;
use types::Clock;

use super::WriteThrottle;

/// Settles fresh rows and compacts shards, one table at a time.
#[derive(Debug)]
pub struct Maintenance {
    pub(super) transactions: Arc<Transactions>,
    pub(super) scans: Arc<dyn PlanScan>,
    pub(super) executor: Arc<Executor>,
    pub(super) loader: Loader,
    pub(super) throttle: Arc<WriteThrottle>,
    pub(super) clock: Arc<dyn Clock>,
    /// Held while a table settles or is compacted.
    pub(super) turn: Mutex<()>,
}

impl Maintenance {
    /// Which reads rows by `scans` on threads of `executor` and writes them by `loader`.
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
