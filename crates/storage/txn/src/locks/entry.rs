//! State of one locked resource.

use super::TxnId;
use super::mode::Request;
use super::queue::{Queue, Waiter};

/// Holders of a resource: a single transaction, or a queue once there are several holders or waiters.
#[derive(Debug)]
pub(super) enum Entry {
    Sole { txn: TxnId, modes: u8 },
    Queued(Box<Queue>),
}

/// Result of an attempt to acquire a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Already held by the transaction.
    Had,
    /// Acquired; `before` are the modes that the transaction held until now.
    Granted { before: u8 },
    /// Held or awaited by another transaction in a conflicting mode.
    Blocked,
}

/// Effect of a change on the waiters.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Waiters that have acquired their locks.
    pub(super) granted: Vec<Waiter>,
    /// True if the resource has neither holders nor waiters.
    pub(super) is_free: bool,
}

impl Entry {
    /// Acquires the lock unless another transaction is in the way.
    pub(super) fn attempt(&mut self, txn: TxnId, request: Request) -> Attempt {
        match self {
            Entry::Sole { txn: holder, modes } if *holder == txn => {
                if *modes & request.covered_by != 0 {
                    return Attempt::Had;
                }
                let before = *modes;
                *modes |= request.bit;
                Attempt::Granted { before }
            }
            Entry::Sole { modes, .. } if *modes & request.conflicts != 0 => Attempt::Blocked,
            Entry::Sole { .. } => self.queue().attempt(txn, request),
            Entry::Queued(queue) => queue.attempt(txn, request),
        }
    }

    /// Resets the modes that a transaction holds to `before`.
    pub(super) fn restore(&mut self, txn: TxnId, before: u8) -> Outcome {
        match self {
            Entry::Sole { txn: holder, modes } => {
                if *holder == txn {
                    *modes = before;
                }
                Outcome { granted: Vec::new(), is_free: *modes == 0 }
            }
            Entry::Queued(queue) => {
                queue.restore(txn, before);
                self.settle()
            }
        }
    }

    /// Grants all requests that no longer conflict, and drops the queue if it is no longer needed.
    pub(super) fn settle(&mut self) -> Outcome {
        let Entry::Queued(queue) = self else { return Outcome::default() };
        let granted = queue.grant();
        let is_free = queue.is_free();
        if let Some((txn, modes)) = queue.sole() {
            *self = Entry::Sole { txn, modes };
        }
        Outcome { granted, is_free }
    }

    /// Returns the queue; creates it if there is none.
    pub(super) fn queue(&mut self) -> &mut Queue {
        if let Entry::Sole { txn, modes } = self {
            *self = Entry::Queued(Box::new(Queue::new(*txn, *modes)));
        }
        match self {
            Entry::Queued(queue) => queue,
            Entry::Sole { .. } => unreachable!("replaced above"),
        }
    }

    pub(super) fn has_waiters(&self) -> bool {
        matches!(self, Entry::Queued(queue) if !queue.waiters().is_empty())
    }
}
