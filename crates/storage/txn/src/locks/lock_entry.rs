//! State of one locked resource.

use super::TxnId;
use super::mode::ModeBits;
use super::queue::{LockQueue, Waiter};

/// Holders of a resource: a single transaction, or a queue once there are several holders or waiters.
#[derive(Debug)]
pub(super) enum LockEntry {
    SingleHolder { txn: TxnId, modes: u8 },
    Queued(Box<LockQueue>),
}

/// Result of an attempt to acquire a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Already held by the transaction.
    AlreadyHeld,
    /// Acquired; `modes_before` are the modes that the transaction held until now.
    Granted { modes_before: u8 },
    /// Held or awaited by another transaction in a conflicting mode.
    Blocked,
}

/// Effect of a change on the waiters.
#[derive(Debug, Default)]
pub(super) struct ChangeEffect {
    /// Waiters that have acquired their locks.
    pub(super) granted: Vec<Waiter>,
    /// True if the resource has neither holders nor waiters.
    pub(super) is_free: bool,
}

impl LockEntry {
    /// Acquires the lock unless another transaction is in the way.
    pub(super) fn try_lock(&mut self, txn: TxnId, request: ModeBits) -> Attempt {
        match self {
            LockEntry::SingleHolder { txn: holder, modes } if *holder == txn => {
                if *modes & request.covered_by != 0 {
                    return Attempt::AlreadyHeld;
                }
                let modes_before = *modes;
                *modes |= request.bit;
                Attempt::Granted { modes_before }
            }
            LockEntry::SingleHolder { modes, .. } if *modes & request.conflicts != 0 => Attempt::Blocked,
            LockEntry::SingleHolder { .. } => self.queue().try_lock(txn, request),
            LockEntry::Queued(queue) => queue.try_lock(txn, request),
        }
    }

    /// Resets the modes that a transaction holds to `modes_before`.
    pub(super) fn restore(&mut self, txn: TxnId, modes_before: u8) -> ChangeEffect {
        match self {
            LockEntry::SingleHolder { txn: holder, modes } => {
                if *holder == txn {
                    *modes = modes_before;
                }
                ChangeEffect { granted: Vec::new(), is_free: *modes == 0 }
            }
            LockEntry::Queued(queue) => {
                queue.restore(txn, modes_before);
                self.grant_waiting()
            }
        }
    }

    /// Grants all requests that no longer conflict, and drops the queue if it is no longer needed.
    pub(super) fn grant_waiting(&mut self) -> ChangeEffect {
        let LockEntry::Queued(queue) = self else { return ChangeEffect::default() };
        let granted = queue.grant();
        let is_free = queue.is_free();
        if let Some((txn, modes)) = queue.only_holder() {
            *self = LockEntry::SingleHolder { txn, modes };
        }
        ChangeEffect { granted, is_free }
    }

    /// Returns the queue; creates it if there is none.
    pub(super) fn queue(&mut self) -> &mut LockQueue {
        if let LockEntry::SingleHolder { txn, modes } = self {
            *self = LockEntry::Queued(Box::new(LockQueue::new(*txn, *modes)));
        }
        match self {
            LockEntry::Queued(queue) => queue,
            LockEntry::SingleHolder { .. } => unreachable!("replaced above"),
        }
    }

    pub(super) fn has_waiters(&self) -> bool {
        matches!(self, LockEntry::Queued(queue) if !queue.waiters().is_empty())
    }
}
