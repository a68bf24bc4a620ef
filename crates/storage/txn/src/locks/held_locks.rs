//! Locks of each transaction, in the order of acquisition.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use super::{MAP_COUNT, Resource, TxnId};

/// Acquired lock, with the modes that the transaction held of the resource before.
#[derive(Debug)]
pub(super) struct HeldLock {
    pub(super) resource: Resource,
    pub(super) modes_before: u8,
}

/// Position in a transaction's list of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LockPosition(usize);

type LocksByTransaction = HashMap<TxnId, Vec<HeldLock>>;

/// Lists of all transactions' locks.
#[derive(Debug)]
pub(super) struct HeldLocks {
    shards: Box<[Mutex<LocksByTransaction>]>,
}

impl Default for HeldLocks {
    fn default() -> Self {
        Self { shards: (0..MAP_COUNT).map(|_| Mutex::default()).collect() }
    }
}

impl HeldLocks {
    pub(super) fn current_position(&self, txn: TxnId) -> LockPosition {
        LockPosition(self.locks_by_transaction(txn).get(&txn).map_or(0, Vec::len))
    }

    pub(super) fn take_acquired_since(&self, txn: TxnId, mark: LockPosition) -> Vec<HeldLock> {
        match self.locks_by_transaction(txn).get_mut(&txn) {
            Some(held) if mark.0 < held.len() => held.split_off(mark.0),
            _ => Vec::new(),
        }
    }

    pub(super) fn take_all(&self, txn: TxnId) -> Vec<HeldLock> {
        self.locks_by_transaction(txn).remove(&txn).unwrap_or_default()
    }

    /// Starts a list of locks that are acquired by one request.
    pub(super) const fn start_batch(&self, txn: TxnId) -> LockBatch<'_> {
        LockBatch { locks: self, txn, acquired: Vec::new() }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
    }

    fn locks_by_transaction(&self, txn: TxnId) -> MutexGuard<'_, LocksByTransaction> {
        self.shards[usize::from(txn.0.to_le_bytes()[0]) % MAP_COUNT].lock()
    }
}

/// Locks acquired by one request; added to the transaction's list on drop, however the request ends.
#[derive(Debug)]
pub(super) struct LockBatch<'a> {
    locks: &'a HeldLocks,
    txn: TxnId,
    acquired: Vec<HeldLock>,
}

impl LockBatch<'_> {
    pub(super) fn push(&mut self, held: HeldLock) {
        self.acquired.push(held);
    }
}

impl Drop for LockBatch<'_> {
    fn drop(&mut self) {
        if !self.acquired.is_empty() {
            self.locks.locks_by_transaction(self.txn).entry(self.txn).or_default().append(&mut self.acquired);
        }
    }
}
