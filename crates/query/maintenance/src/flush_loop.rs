//! The background loop that flushes and compacts tables as they become due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::{CatalogState, Storage, Table};
use futures::future::BoxFuture;
use types::{Oid, ServiceHealth, SqlResult};

use crate::backoff::Backoff;
use crate::maintenance::Maintenance;

/// Thresholds that trigger a flush of fresh rows to shards.
#[derive(Debug, Clone, Copy)]
pub struct FlushSettings {
    /// Interval between checks of all tables.
    pub check_interval: Duration,
    /// Fresh rows of a table that trigger its flush.
    pub rows: usize,
    /// Memory of a table's fresh rows, in bytes, that triggers its flush.
    pub bytes: u64,
    /// Memory of the fresh rows of all tables together, in bytes, from which every table with fresh rows is flushed.
    pub total_bytes: u64,
    /// Age of a table's oldest fresh row that triggers its flush, however few rows there are.
    pub age: Duration,
}

impl Default for FlushSettings {
    fn default() -> Self {
        // Key lookups are fastest in fresh rows, and small shards are soon compacted: few rows are not flushed at once.
        Self {
            check_interval: Duration::from_secs(1),
            rows: 100_000,
            bytes: 64 << 20,
            total_bytes: u64::MAX,
            age: Duration::from_secs(60),
        }
    }
}

impl Maintenance {
    /// Flushes and compacts tables until the server stops or its transactions are poisoned.
    pub fn run_flush_loop<'a>(
        self: Arc<Self>,
        settings: FlushSettings,
        health: &'a ServiceHealth,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.run_flush_loop_unboxed(settings, health))
    }

    async fn run_flush_loop_unboxed(self: Arc<Self>, settings: FlushSettings, health: &ServiceHealth) {
        let mut waiting = HashMap::new();
        let mut patience = Backoff::default();
        while !self.transactions.is_poisoned() {
            let now = self.clock.monotonic();
            let state = self.transactions.current().state;
            patience.retain(|table| state.table(table).is_some());
            let due = due_tables(&state, &mut waiting, now, settings);
            // A catalog state pins the shards it names: release it before the slow work.
            drop(state);
            for table in due.into_iter().filter(|table| patience.may_retry(*table, now)).collect::<Vec<_>>() {
                let done = match self.flush(table).await {
                    Ok(_) => self.compact(table).await.map(|_| ()),
                    Err(error) => Err(error),
                };
                self.record_outcome(table, done, &mut patience);
                self.transactions.forget_moves(self.throttle.is_behind());
            }
            match patience.failure_reason() {
                Some(reason) => health.report_failure(reason),
                None => health.report_success(),
            }
            self.clock.sleep(settings.check_interval).await;
        }
    }

    fn record_outcome(&self, table: Oid, done: SqlResult<()>, patience: &mut Backoff) {
        match done {
            Ok(()) => {
                if patience.record_success(table) {
                    tracing::info!(table = table.0, "flushing the table's rows to Parquet works again after failures");
                }
            }
            Err(error) => {
                if patience.record_failure(table, &error.message, self.clock.monotonic()) {
                    tracing::warn!(
                        table = table.0,
                        error = %error.message,
                        "could not flush the table's rows to Parquet; will retry"
                    );
                }
            }
        }
    }
}

/// For each table with fresh rows, their generation and the moment since which it has had rows of that generation.
type FreshSince = HashMap<Oid, (u64, Duration)>;

/// Returns the tables whose fresh rows must be flushed at the moment `now`.
fn due_tables(state: &CatalogState, waiting: &mut FreshSince, now: Duration, settings: FlushSettings) -> Vec<Oid> {
    waiting.retain(|table, _| state.table(*table).is_some());
    let of_rows = |table: &&Arc<Table>| table.storage != Storage::Row;
    let all: u64 = state.tables().filter(of_rows).map(|table| state.rows(table.oid).fresh.memory_bytes()).sum();
    let mut due = Vec::new();
    for table in state.tables().filter(of_rows) {
        let fresh = &state.rows(table.oid).fresh;
        if fresh.active.is_empty() && fresh.sealed.is_none() {
            waiting.remove(&table.oid);
            continue;
        }
        let since = waiting.entry(table.oid).or_insert((fresh.generation, now));
        if since.0 != fresh.generation {
            *since = (fresh.generation, now);
        }
        let are_many = settings.rows <= fresh.len() || settings.bytes <= fresh.memory_bytes();
        if are_many || settings.total_bytes <= all || settings.age <= now.saturating_sub(since.1) {
            due.push(table.oid);
        }
    }
    due
}
