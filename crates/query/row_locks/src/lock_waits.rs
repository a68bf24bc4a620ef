//! Waits for locks, within the session's `lock_timeout` and until cancellation, and the errors of waits that fail.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use catalog::{Constraint, ConstraintKind, Table};
use executor::RunContext;
use tokio_util::sync::CancellationToken;
use txn::locks::{LockError, LockOutcome, LockWait, Resource, TableLock, WaitEdge};
use txn::{Isolation, Transaction};
use types::interrupt::canceled_error;
use types::{Condition, Oid, SqlError, SqlResult};

/// Limits of a statement's waits for locks.
#[derive(Debug, Clone)]
pub struct LockWaits {
    timeout: Option<Duration>,
    cancel: CancellationToken,
}

impl LockWaits {
    /// Takes the limits from the statement's settings and cancellation.
    #[must_use]
    pub fn from_context(context: &RunContext) -> Self {
        Self { timeout: context.settings.lock_timeout(), cancel: context.cancel.clone() }
    }

    /// Returns the wait mode of one lock request.
    #[must_use]
    pub fn lock_wait(&self) -> LockWait {
        LockWait::Block { timeout: self.timeout }
    }

    /// Waits for the lock unless the statement is cancelled first.
    ///
    /// # Errors
    /// `57014` if cancelled; `40P01` and `55P03` if the lock is not granted.
    pub async fn wait_for(
        &self,
        lock_request: impl Future<Output = Result<LockOutcome, LockError>>,
    ) -> SqlResult<LockOutcome> {
        tokio::select! {
            biased;
            // Most locks are granted at once.
            locked = lock_request => locked.map_err(|error| lock_error(&error)),
            () = self.cancel.cancelled() => Err(canceled_error()),
        }
    }
}

/// Locks a table before its rows change. Returns true if another transaction was in the way, so that the statement has
/// to be planned again.
///
/// # Errors
/// `55P03`, `40P01`; `57014` if cancelled.
pub async fn lock_for_rows(table: &Table, transaction: &Transaction, context: &RunContext) -> SqlResult<bool> {
    let waits = LockWaits::from_context(context);
    let locked = transaction.lock_table(table.oid, TableLock::RowExclusive, waits.lock_wait());
    Ok(waits.wait_for(locked).await?.waited || has_new_references(table, transaction))
}

/// Returns true if foreign keys refer to the table that are not in the transaction's snapshot yet.
fn has_new_references(table: &Table, transaction: &Transaction) -> bool {
    if transaction.isolation() != Isolation::ReadCommitted || transaction.sees_newest() {
        return false;
    }
    let (view, now) = (transaction.view(), transaction.newest());
    if Arc::ptr_eq(now.state.definitions(), view.state.definitions()) {
        return false;
    }
    let refers = |constraint: &&Constraint| {
        let kind = &constraint.kind;
        constraint.enforced && matches!(kind, ConstraintKind::ForeignKey { references, .. } if *references == table.oid)
    };
    let known: BTreeSet<Oid> =
        view.state.tables().flat_map(|it| &it.constraints).filter(refers).map(|it| it.oid).collect();
    now.state.tables().flat_map(|it| &it.constraints).filter(refers).any(|it| !known.contains(&it.oid))
}

/// Returns the `40001` error of a conflict; `None` under READ COMMITTED, where the statement is run again.
#[must_use]
pub fn serialization_failure(isolation: Isolation, what: &str) -> Option<SqlError> {
    let message = format!("could not serialize access due to concurrent {what}");
    (isolation != Isolation::ReadCommitted).then(|| SqlError::new(Condition::SerializationFailure, message))
}

fn describe_resource(resource: &Resource) -> String {
    match resource {
        Resource::Table(table) => format!("relation {table}"),
        Resource::Row(table, row) => format!("row {} of relation {table}", row.0),
        Resource::Key(key) if key.index == Oid::default() => "a token".to_owned(),
        Resource::Key(_) => "a key".to_owned(),
    }
}

/// Locks the tables that DDL changes, and those that new foreign keys refer to, against all writers. Returns true if
/// another transaction was in the way, or if `are_checked` and another one wrote to the tables first, so that the
/// statement has to be planned again.
///
/// # Errors
/// `55P03`, `40P01`, `40001`; `57014` if cancelled.
pub async fn lock_tables(
    tables: &BTreeSet<Oid>,
    referred: &BTreeSet<Oid>,
    checks_rows: bool,
    transaction: &Transaction,
    context: &RunContext,
) -> SqlResult<bool> {
    let waits = LockWaits::from_context(context);
    let mut waited = false;
    for table in tables {
        let locked = transaction.lock_table(*table, TableLock::AccessExclusive, waits.lock_wait());
        waited |= waits.wait_for(locked).await?.waited;
    }
    for table in referred.difference(tables) {
        let locked = transaction.lock_table(*table, TableLock::ShareRowExclusive, waits.lock_wait());
        waited |= waits.wait_for(locked).await?.waited;
    }
    // Rows committed after the snapshot and before the lock would escape the check.
    let now = transaction.newest();
    let has_new = |table: &Oid| transaction.row_counters(*table).writes < now.state.rows(*table).counters.writes;
    if checks_rows && !waited && tables.iter().chain(referred).any(has_new) {
        return serialization_failure(transaction.isolation(), "update").map_or(Ok(true), Err);
    }
    Ok(waited)
}

/// Converts a lock error to PostgreSQL's `40P01` or `55P03`.
#[must_use]
pub fn lock_error(error: &LockError) -> SqlError {
    match error {
        LockError::NotAvailable { resource } => {
            let what = match resource {
                Resource::Table(_) => "relation",
                _ => "row in relation",
            };
            SqlError::new(Condition::LockNotAvailable, format!("could not obtain lock on {what}"))
        }
        LockError::Timeout { .. } => {
            SqlError::new(Condition::LockNotAvailable, "canceling statement due to lock timeout")
        }
        LockError::Deadlock { cycle: circle } => {
            let wait = |wait: &WaitEdge| {
                let what = describe_resource(&wait.resource);
                format!("Transaction {} waits for {what}; blocked by transaction {}.", wait.waiter.0, wait.blocker.0)
            };
            let waits = circle.iter().map(wait).collect::<Vec<_>>().join("\n");
            SqlError::new(Condition::DeadlockDetected, "deadlock detected")
                .with_detail(waits)
                .with_hint("See server log for query details.")
        }
    }
}
