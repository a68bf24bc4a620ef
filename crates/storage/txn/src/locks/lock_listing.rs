//! Listing of locks and waits, for `pg_locks`.

use super::lock_entry::LockEntry;
use super::{LockManager, LockMode, Resource, TxnId};

/// Lock that a transaction holds or waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockInfo {
    pub resource: Resource,
    pub txn: TxnId,
    pub mode: LockMode,
    /// Start of the wait in microseconds since 1970-01-01 UTC; `None` if the lock is held.
    pub waiting_since_us: Option<i64>,
}

impl LockManager {
    /// Lists the locks of tables, and those of rows and keys that a transaction waits for: as in PostgreSQL, the others
    /// are too many.
    #[must_use]
    pub fn list(&self) -> Vec<LockInfo> {
        let mut list = Vec::new();
        for shard in &self.lock_maps {
            for (resource, entry) in shard.lock().iter() {
                if matches!(resource, Resource::Table(_)) || entry.has_waiters() {
                    list_entry(resource, entry, &mut list);
                }
            }
        }
        list.sort_unstable_by(|left, right| {
            (&left.resource, left.waiting_since_us, left.txn, left.mode).cmp(&(
                &right.resource,
                right.waiting_since_us,
                right.txn,
                right.mode,
            ))
        });
        list
    }
}

fn list_entry(resource: &Resource, entry: &LockEntry, list: &mut Vec<LockInfo>) {
    let mut add = |txn, modes, waiting_since_us| {
        list.extend(resource.modes(modes).map(|mode| LockInfo {
            resource: resource.clone(),
            txn,
            mode,
            waiting_since_us,
        }));
    };
    match entry {
        LockEntry::SingleHolder { txn, modes } => add(*txn, *modes, None),
        LockEntry::Queued(queue) => {
            for (txn, modes) in queue.holders() {
                add(*txn, *modes, None);
            }
            for waiter in queue.waiters() {
                add(waiter.txn, waiter.request.bit, Some(waiter.since_us));
            }
        }
    }
}
