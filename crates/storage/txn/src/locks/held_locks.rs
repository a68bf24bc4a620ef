//! Locks of each transaction, in the order of acquisition.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};

use super::{MAP_COUNT, Resource, TxnId};

/// Acquired lock, with the modes that the transaction held of the resource before.
#[derive(Debug)]
pub(super) struct HeldLock {
    pub(super) resource: Resource,
    pub(super) before: u8,
}

/// Position in a transaction's list of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LockMark(usize);

type Shard = HashMap<TxnId, Vec<HeldLock>>;

/// Lists of all transactions' locks.
#[derive(Debug)]
pub(super) struct HeldLocks {
    shards: Box<[Mutex<Shard>]>,
}

impl Default for HeldLocks {
    fn default() -> Self {
        Self { shards: (0..MAP_COUNT).map(|_| Mutex::default()).collect() }
    }
}

impl HeldLocks {
    pub(super) fn mark(&self, txn: TxnId) -> LockMark {
        LockMark(self.shard(txn).get(&txn).map_or(0, Vec::len))
    }

    pub(super) fn take_since(&self, txn: TxnId, mark: LockMark) -> Vec<HeldLock> {
        match self.shard(txn).get_mut(&txn) {
            Some(held) if mark.0 < held.len() => held.split_off(mark.0),
            _ => Vec::new(),
        }
    }

    pub(super) fn take_all(&self, txn: TxnId) -> Vec<HeldLock> {
        self.shard(txn).remove(&txn).unwrap_or_default()
    }

    /// Starts a list of locks that are acquired by one request.
    pub(super) const fn batch(&self, txn: TxnId) -> LockBatch<'_> {
        LockBatch { locks: self, txn, taken: Vec::new() }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
    }

    fn shard(&self, txn: TxnId) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(txn.0.to_le_bytes()[0]) % MAP_COUNT].lock()
    }
}

/// Locks acquired by one request; added to the transaction's list on drop, however the request ends.
#[derive(Debug)]
pub(super) struct LockBatch<'a> {
    locks: &'a HeldLocks,
    txn: TxnId,
    taken: Vec<HeldLock>,
}

impl LockBatch<'_> {
    pub(super) fn push(&mut self, held: HeldLock) {
        self.taken.push(held);
    }
}

impl Drop for LockBatch<'_> {
    fn drop(&mut self) {
        if !self.taken.is_empty() {
            self.locks.shard(self.txn).entry(self.txn).or_default().append(&mut self.taken);
        }
    }
}
