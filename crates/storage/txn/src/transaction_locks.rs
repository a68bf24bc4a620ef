//! The lock holder of a transaction: takes its locks and releases them when it ends.

use std::sync::Arc;

use types::{InjectedBug, Oid, RowId};

use crate::locks::{KeyLock, LockError, LockOutcome, LockPosition, LockWait, RowLock, TableLock, TxnId};
use crate::transactions::Core;

/// Lock holder of one transaction; releases all its locks on drop. It travels with the commit request, so that the
/// locks are released only once the commit is visible or has failed.
#[derive(Debug)]
pub(crate) struct TransactionLocks {
    core: Arc<Core>,
    id: TxnId,
}

impl TransactionLocks {
    pub(crate) fn new(core: &Arc<Core>, id: TxnId) -> Self {
        Self { core: Arc::clone(core), id }
    }

    pub(crate) async fn lock_table(
        &self,
        table: Oid,
        mode: TableLock,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        self.core.locks.lock_table(self.id, table, mode, wait).await
    }

    pub(crate) async fn lock_rows(
        &self,
        table: Oid,
        rows: &[RowId],
        mode: RowLock,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        if InjectedBug::NoRowLocks.is_active() {
            return Ok(LockOutcome::default());
        }
        self.core.locks.lock_rows(self.id, table, rows, mode, wait).await
    }

    pub(crate) async fn lock_keys(
        &self,
        index: Oid,
        keys: &[Vec<u8>],
        mode: KeyLock,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        if InjectedBug::NoKeyLocks.is_active() {
            return Ok(LockOutcome::default());
        }
        self.core.locks.lock_keys(self.id, index, keys, mode, wait).await
    }

    /// Locks a client's idempotency token. Tokens use key locks of index 0, which no index has.
    pub(crate) async fn lock_token(&self, key: &[u8], wait: LockWait) -> Result<LockOutcome, LockError> {
        if InjectedBug::NoTokenLocks.is_active() {
            return Ok(LockOutcome::default());
        }
        self.core.locks.lock_keys(self.id, Oid::default(), &[key], KeyLock::Exclusive, wait).await
    }

    pub(crate) fn current_position(&self) -> LockPosition {
        self.core.locks.current_position(self.id)
    }

    pub(crate) fn release_to(&self, mark: LockPosition) {
        self.core.locks.release_to(self.id, mark);
    }
}

impl Drop for TransactionLocks {
    fn drop(&mut self) {
        self.core.locks.release_all(self.id);
    }
}
