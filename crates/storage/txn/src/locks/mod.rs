//! Locks on tables, rows and keys, held in memory from their taking to their transaction's end.
//!
//! Never looks at what it locks. A lock says only that others keep off from now on: what was changed before has to be looked at
//! after the lock is taken, whether or not its taking had to wait.
//!
//! A thing that one transaction holds and nobody waits for is 32 bytes in a map, and 24 on the list of what the transaction holds.
//! A contended thing has a queue, in which nobody overtakes whom it conflicts with. Who has to wait looks at once whether those that it
//! waits for wait for it, and is refused then.
//!
//! Start at `mode.rs` for who conflicts with whom, then `queue.rs`; `wait.rs` says how waiting begins and ends, `deadlock.rs` when
//! it cannot end.

mod deadlock;
mod entry;
mod error;
mod held;
mod list;
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

use deadlock::Graph;
use entry::{Attempt, Entry};
use held::{Held, HeldLocks};
use mode::Request;
use parking_lot::{Mutex, MutexGuard};
use types::{Clock, Oid, RowId};

pub use deadlock::WaitsFor;
pub use error::LockError;
pub use held::LockMark;
pub use list::LockInfo;
pub use mode::{KeyLock, LockMode, RowLock, TableLock};
pub use resource::{KeyName, Resource};

/// Identity of a running transaction, given by the caller and never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u64);

/// What to do about a lock that cannot be had at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Wait, for each lock at most so long.
    Block { timeout: Option<Duration> },
    /// Fail with [`LockError::NotAvailable`].
    NoWait,
    /// Go on without it.
    SkipLocked,
}

/// What taking locks came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Locked {
    /// Whether another transaction was in the way: then it may have changed what is locked now.
    pub waited: bool,
    /// Positions in the request of what [`LockWait::SkipLocked`] left out.
    pub skipped: Vec<usize>,
}

/// All locks. A transaction asks for one thing at a time.
#[derive(Debug)]
pub struct LockManager {
    entries: Box<[Mutex<HashMap<Resource, Entry>>]>,
    held: HeldLocks,
    /// Who waits. Taken before the map of a contended thing: nothing about waiting changes without it.
    graph: Mutex<Graph>,
    hasher: RandomState,
    clock: Arc<dyn Clock>,
}

/// A power of two; enough that cores seldom meet.
const SHARDS: usize = 64;
/// Who had so many locks leaves room behind that others will hardly need.
const MANY: usize = 64 * 1024;

impl LockManager {
    /// No locks yet. Timeouts are measured on `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> LockManager {
        LockManager {
            entries: (0..SHARDS).map(|_| Mutex::default()).collect(),
            held: HeldLocks::default(),
            graph: Mutex::default(),
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
    ) -> Result<Locked, LockError> {
        self.lock_each(txn, std::iter::once(Resource::Table(table)), mode.request(), wait).await
    }

    /// Locks rows of a table in the order given. What was locked before a failure stays locked.
    pub async fn lock_rows(
        &self,
        txn: TxnId,
        table: Oid,
        rows: &[RowId],
        mode: RowLock,
        wait: LockWait,
    ) -> Result<Locked, LockError> {
        self.lock_each(txn, rows.iter().map(|row| Resource::Row(table, *row)), mode.request(), wait).await
    }

    /// Locks keys of an index or constraint in the order given, present or not. What was locked before a failure stays locked.
    pub async fn lock_keys<K: AsRef<[u8]> + Sync>(
        &self,
        txn: TxnId,
        index: Oid,
        keys: &[K],
        mode: KeyLock,
        wait: LockWait,
    ) -> Result<Locked, LockError> {
        let resources = keys.iter().map(|key| Resource::key(index, key.as_ref()));
        self.lock_each(txn, resources, mode.request(), wait).await
    }

    /// Where a transaction's locks stand now, to give back those that it takes later.
    #[must_use]
    pub fn mark(&self, txn: TxnId) -> LockMark {
        self.held.mark(txn)
    }

    /// Gives back what the transaction has locked, or locked more strongly, since the mark. It must not be waiting.
    pub fn release_to(&self, txn: TxnId, mark: LockMark) {
        for Held { resource, before } in self.held.take_since(txn, mark).into_iter().rev() {
            self.restore(txn, &resource, before);
        }
    }

    /// Gives back all locks of a transaction that has ended. It must not be waiting.
    pub fn release_all(&self, txn: TxnId) {
        let held = self.held.take_all(txn);
        let are_many = MANY <= held.len();
        for Held { resource, .. } in held {
            self.restore(txn, &resource, 0);
        }
        if are_many {
            self.shrink();
        }
    }

    /// Gives memory back that nobody needs any more.
    fn shrink(&self) {
        for shard in &self.entries {
            let mut shard = shard.lock();
            let used = shard.len().max(MANY / SHARDS);
            shard.shrink_to(2 * used);
        }
    }

    async fn lock_each(
        &self,
        txn: TxnId,
        resources: impl Iterator<Item = Resource> + Send,
        request: Request,
        wait: LockWait,
    ) -> Result<Locked, LockError> {
        let mut locked = Locked::default();
        let mut held = self.held.batch(txn);
        for (position, resource) in resources.enumerate() {
            match (self.attempt(txn, &resource, request), wait) {
                (Attempt::Had, _) => {}
                (Attempt::Granted { before }, _) => held.push(Held { resource, before }),
                (Attempt::Blocked, LockWait::NoWait) => return Err(LockError::NotAvailable { resource }),
                (Attempt::Blocked, LockWait::SkipLocked) => locked.skipped.push(position),
                (Attempt::Blocked, LockWait::Block { timeout }) => {
                    locked.waited = true;
                    if let Some(before) = Box::pin(self.wait_for(txn, &resource, request, timeout)).await? {
                        held.push(Held { resource, before });
                    }
                }
            }
        }
        Ok(locked)
    }

    /// Takes the lock if nobody is in the way.
    fn attempt(&self, txn: TxnId, resource: &Resource, request: Request) -> Attempt {
        match self.shard(resource).entry(resource.clone()) {
            hash_map::Entry::Occupied(mut entry) => entry.get_mut().attempt(txn, request),
            hash_map::Entry::Vacant(entry) => {
                entry.insert(Entry::Sole { txn, modes: request.bit });
                Attempt::Granted { before: 0 }
            }
        }
    }

    /// Sets what a transaction holds of a thing back to `before`; 0 is nothing.
    fn restore(&self, txn: TxnId, resource: &Resource, before: u8) {
        {
            let mut shard = self.shard(resource);
            let Some(entry) = shard.get_mut(resource) else { return };
            if !entry.has_waiters() {
                if entry.restore(txn, before).is_free {
                    shard.remove(resource);
                }
                return;
            }
        }
        let mut graph = self.graph.lock();
        self.change(&mut graph, resource, |entry| entry.restore(txn, before));
    }

    /// Changes a contended thing and wakes who has got it thereby.
    fn change(&self, graph: &mut Graph, resource: &Resource, change: impl FnOnce(&mut Entry) -> entry::Outcome) {
        let mut shard = self.shard(resource);
        let Some(entry) = shard.get_mut(resource) else { return };
        let outcome = change(entry);
        if outcome.is_free {
            shard.remove(resource);
        }
        drop(shard);
        for waiter in outcome.granted {
            graph.leave(waiter.txn);
            waiter.wake();
        }
    }

    fn shard(&self, resource: &Resource) -> MutexGuard<'_, HashMap<Resource, Entry>> {
        let hash = self.hasher.hash_one(resource).to_le_bytes();
        self.entries[usize::from(hash[0]) % SHARDS].lock()
    }
}
