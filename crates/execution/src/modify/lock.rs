//! Waiting for locks as a session's settings say, and what clients are told when they are not had.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use txn::Transaction;
use txn::locks::{LockError, LockWait, Locked, Resource, TableLock, WaitsFor};
use types::interrupt::canceled;
use types::{Condition, Oid, SqlError, SqlResult};

use super::refused;
use crate::{Execution, RunContext};

/// How long a statement waits for locks.
#[derive(Debug, Clone)]
pub struct Waits {
    timeout: Option<Duration>,
    cancel: CancellationToken,
}

impl Waits {
    /// As the settings of the statement say, and until it is cancelled.
    #[must_use]
    pub fn of(context: &RunContext) -> Self {
        Self { timeout: context.settings.lock_timeout(), cancel: context.cancel.clone() }
    }

    /// How a lock is asked for.
    #[must_use]
    pub fn wait(&self) -> LockWait {
        LockWait::Block { timeout: self.timeout }
    }

    /// Waits for the lock unless the statement is cancelled first.
    ///
    /// # Errors
    /// `57014`, and where the lock is not had: `40P01`, `55P03`.
    pub async fn interruptibly(&self, locked: impl Future<Output = Result<Locked, LockError>>) -> SqlResult<Locked> {
        tokio::select! {
            biased;
            // Most locks are had at once.
            locked = locked => locked.map_err(|error| from_lock(&error)),
            () = self.cancel.cancelled() => Err(canceled()),
        }
    }
}

fn what(resource: &Resource) -> String {
    match resource {
        Resource::Table(table) => format!("relation {table}"),
        Resource::Row(table, row) => format!("row {} of relation {table}", row.0),
        Resource::Key(key) if key.index == Oid::default() => "a token".to_owned(),
        Resource::Key(_) => "a key".to_owned(),
    }
}

impl Execution {
    /// Locks the tables that a definition changes, and those that it lets others refer to, against everyone who writes them; whether another
    /// transaction was in the way, or came
    /// first where rows `are_checked`, so that the statement has to be planned again.
    ///
    /// # Errors
    /// `55P03`, `40P01`; `57014` when cancelled.
    pub async fn lock_tables(
        &self,
        tables: &BTreeSet<Oid>,
        referred: &BTreeSet<Oid>,
        are_checked: bool,
        transaction: &Transaction,
        context: &RunContext,
    ) -> SqlResult<bool> {
        let waits = Waits::of(context);
        let mut waited = false;
        for table in tables {
            let locked = transaction.lock_table(*table, TableLock::AccessExclusive, waits.wait());
            waited |= waits.interruptibly(locked).await?.waited;
        }
        for table in referred.difference(tables) {
            let locked = transaction.lock_table(*table, TableLock::ShareRowExclusive, waits.wait());
            waited |= waits.interruptibly(locked).await?.waited;
        }
        // Rows that came before the lock and after the view would be asked nothing.
        let now = transaction.newest();
        let has_new = |table: &Oid| transaction.history(*table).written < now.state.rows(*table).history.written;
        if are_checked && !waited && tables.iter().chain(referred).any(has_new) {
            return refused(transaction.isolation(), "update").map_or(Ok(true), Err);
        }
        Ok(waited)
    }
}

/// What clients are told of a lock that was not had: `40P01`, `55P03`.
#[must_use]
pub fn from_lock(error: &LockError) -> SqlError {
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
        LockError::Deadlock { circle } => {
            let wait = |wait: &WaitsFor| {
                let what = what(&wait.resource);
                format!("Transaction {} waits for {what}; blocked by transaction {}.", wait.waiter.0, wait.blocker.0)
            };
            let waits = circle.iter().map(wait).collect::<Vec<_>>().join("\n");
            SqlError::new(Condition::DeadlockDetected, "deadlock detected")
                .with_detail(waits)
                .with_hint("See server log for query details.")
        }
    }
}
