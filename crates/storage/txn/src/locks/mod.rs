//! Lock manager: locks on tables, rows and keys, in memory, held from acquisition to the end of the transaction.
//!
//! The lock manager never looks at what it locks. A lock only keeps other transactions off from its acquisition on: the
//! caller must check for changes made before, whether or not it had to wait.
//!
//! An uncontended resource takes 32 bytes in a map, and 24 bytes in the list of its holder's locks. A contended
//! resource has a queue, in which no request overtakes another that it conflicts with. Each request that must wait
//! first searches for a deadlock, and is refused if it would close a cycle.
//!
//! Reading order:
//!
//! - `mode.rs`: lock modes and their conflicts
//! - `resource.rs`: lockable resources
//! - `lock_entry.rs`: state of one resource
//! - `queue.rs`: holders and waiters of a contended resource
//! - `wait.rs`: the phases of waiting for a lock
//! - `deadlock.rs`: the waits-for graph
//! - `held_locks.rs`: the locks of each transaction, for their release
//! - `lock_listing.rs`: listing for `pg_locks`

mod deadlock;
mod error;
mod held_locks;
mod lock_entry;
mod lock_listing;
mod mode;
mod queue;
mod resource;
mod wait;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use deadlock::WaitsForGraph;
use held_locks::{HeldLock, HeldLocks};
use lock_entry::{Attempt, LockEntry};
use mode::ModeBits;
use parking_lot::{Mutex, MutexGuard};
use types::{Clock, Oid, RowId};

pub use deadlock::WaitEdge;
pub use error::LockError;
pub use held_locks::LockPosition;
pub use lock_listing::LockInfo;
pub use mode::{KeyLock, LockMode, RowLock, TableLock};
pub use resource::{LockedKey, Resource};

/// Identifier of a running transaction, chosen by the caller and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// Behaviour of a request that is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Wait, for each lock at most the timeout.
    Block { timeout: Option<Duration> },
    /// Fail with [`LockError::NotAvailable`].
    NoWait,
    /// Skip the lock and continue with the next.
    SkipLocked,
}

/// Result of a successful lock request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockOutcome {
    /// True if a request was blocked, in which case another transaction may have changed what is locked now.
    pub waited: bool,
    /// Indexes in the request of the resources that [`LockWait::SkipLocked`] skipped.
    pub skipped: Vec<usize>,
}

/// Lock manager of an instance. Each transaction has at most one request in progress.
#[derive(Debug)]
pub struct LockManager {
    lock_maps: Box<[Mutex<HashMap<Resource, LockEntry>>]>,
    held_locks: HeldLocks,
    /// The waits-for graph. Taken before the map of a contended resource: waiting never changes without it.
    waits_for_graph: Mutex<WaitsForGraph>,
    hasher: RandomState,
    clock: Arc<dyn Clock>,
}

/// Number of independently locked maps: a power of two, large enough that cores rarely meet.
const MAP_COUNT: usize = 64;
/// Number of locks of a transaction from which its end shrinks the maps, as others will hardly need their capacity.
const SHRINK_THRESHOLD: usize = 64 * 1024;

impl LockManager {
    /// Creates a lock manager without locks; `clock` measures timeouts.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> LockManager {
        LockManager {
            lock_maps: (0..MAP_COUNT).map(|_| Mutex::default()).collect(),
            held_locks: HeldLocks::default(),
            waits_for_graph: Mutex::default(),
            hasher: RandomState::new(),
            clock,
        }
    }

    /// Locks a table.
    pub async fn lock_table(
        &self,
        txn: TxnId,
        table: Oid,
        mode: TableLock,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        self.lock_each(txn, std::iter::once(Resource::Table(table)), mode.mode_bits(), wait).await
    }

    /// Locks rows of a table in the given order. Locks acquired before a failure are retained.
    pub async fn lock_rows(
        &self,
        txn: TxnId,
        table: Oid,
        rows: &[RowId],
        mode: RowLock,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        self.lock_each(txn, rows.iter().map(|row| Resource::Row(table, *row)), mode.mode_bits(), wait).await
    }

    /// Locks keys of an index or constraint in the given order, whether or not they exist. Locks acquired before a
    /// failure are retained.
    pub async fn lock_keys<K: AsRef<[u8]> + Sync>(
        &self,
        txn: TxnId,
        index: Oid,
        keys: &[K],
        mode: KeyLock,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        let resources = keys.iter().map(|key| Resource::key(index, key.as_ref()));
        self.lock_each(txn, resources, mode.mode_bits(), wait).await
    }

    /// Returns the current position in the transaction's list of locks, for [`Self::release_to`].
    #[must_use]
    pub fn current_position(&self, txn: TxnId) -> LockPosition {
        self.held_locks.current_position(txn)
    }

    /// Releases locks, and undoes upgrades of locks, that were acquired since the mark. The transaction must not be
    /// waiting.
    pub fn release_to(&self, txn: TxnId, mark: LockPosition) {
        for HeldLock { resource, modes_before } in self.held_locks.take_acquired_since(txn, mark).into_iter().rev() {
            self.restore_modes(txn, &resource, modes_before);
        }
    }

    /// Releases all locks of a transaction that has ended. It must not be waiting.
    pub fn release_all(&self, txn: TxnId) {
        let held = self.held_locks.take_all(txn);
        let are_many = SHRINK_THRESHOLD <= held.len();
        for HeldLock { resource, .. } in held {
            self.restore_modes(txn, &resource, 0);
        }
        if are_many {
            self.shrink();
        }
    }

    /// Returns unused capacity of the maps to the allocator.
    fn shrink(&self) {
        for shard in &self.lock_maps {
            let mut shard = shard.lock();
            let used = shard.len().max(SHRINK_THRESHOLD / MAP_COUNT);
            shard.shrink_to(2 * used);
        }
    }

    async fn lock_each(
        &self,
        txn: TxnId,
        resources: impl Iterator<Item = Resource> + Send,
        request: ModeBits,
        wait: LockWait,
    ) -> Result<LockOutcome, LockError> {
        let mut locked = LockOutcome::default();
        let mut held = self.held_locks.start_batch(txn);
        for (position, resource) in resources.enumerate() {
            match (self.try_lock(txn, &resource, request), wait) {
                (Attempt::AlreadyHeld, _) => {}
                (Attempt::Granted { modes_before }, _) => held.push(HeldLock { resource, modes_before }),
                (Attempt::Blocked, LockWait::NoWait) => return Err(LockError::NotAvailable { resource }),
                (Attempt::Blocked, LockWait::SkipLocked) => locked.skipped.push(position),
                (Attempt::Blocked, LockWait::Block { timeout }) => {
                    locked.waited = true;
                    if let Some(modes_before) = Box::pin(self.wait_for(txn, &resource, request, timeout)).await? {
                        held.push(HeldLock { resource, modes_before });
                    }
                }
            }
        }
        Ok(locked)
    }

    /// Acquires the lock unless another transaction is in the way.
    fn try_lock(&self, txn: TxnId, resource: &Resource, request: ModeBits) -> Attempt {
        match self.lock_map(resource).entry(resource.clone()) {
            hash_map::Entry::Occupied(mut entry) => entry.get_mut().try_lock(txn, request),
            hash_map::Entry::Vacant(entry) => {
                entry.insert(LockEntry::SingleHolder { txn, modes: request.bit });
                Attempt::Granted { modes_before: 0 }
            }
        }
    }

    /// Resets the modes that a transaction holds of a resource to `modes_before`; 0 means none.
    fn restore_modes(&self, txn: TxnId, resource: &Resource, modes_before: u8) {
        {
            let mut shard = self.lock_map(resource);
            let Some(entry) = shard.get_mut(resource) else { return };
            if !entry.has_waiters() {
                if entry.restore(txn, modes_before).is_free {
                    shard.remove(resource);
                }
                return;
            }
        }
        let mut graph = self.waits_for_graph.lock();
        self.change_entry(&mut graph, resource, |entry| entry.restore(txn, modes_before));
    }

    /// Changes a contended resource and wakes the waiters that acquire their locks by it.
    fn change_entry(
        &self,
        graph: &mut WaitsForGraph,
        resource: &Resource,
        change: impl FnOnce(&mut LockEntry) -> lock_entry::ChangeEffect,
    ) {
        let mut shard = self.lock_map(resource);
        let Some(entry) = shard.get_mut(resource) else { return };
        let outcome = change(entry);
        if outcome.is_free {
            shard.remove(resource);
        }
        drop(shard);
        for waiter in outcome.granted {
            graph.remove_wait(waiter.txn);
            waiter.wake();
        }
    }

    fn lock_map(&self, resource: &Resource) -> MutexGuard<'_, HashMap<Resource, LockEntry>> {
        let hash = self.hasher.hash_one(resource).to_le_bytes();
        self.lock_maps[usize::from(hash[0]) % MAP_COUNT].lock()
    }
}
