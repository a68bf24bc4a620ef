//! One locked thing.

use super::TxnId;
use super::mode::Request;
use super::queue::{Queue, Waiter};

/// Who holds a thing. Without a queue as long as it is one transaction and nobody waits.
#[derive(Debug)]
pub(super) enum Entry {
    Sole { txn: TxnId, modes: u8 },
    Queued(Box<Queue>),
}

/// What asking for a lock came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The transaction held it already.
    Had,
    /// It is the transaction's now, who held `before`.
    Granted { before: u8 },
    /// Another transaction is in the way.
    Blocked,
}

/// What a change led to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Waiters that hold the thing now.
    pub(super) granted: Vec<Waiter>,
    /// Nobody holds it and nobody waits.
    pub(super) is_free: bool,
}

impl Entry {
    /// Takes the lock if nobody is in the way.
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

    /// Sets what a transaction holds back to `before`.
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

    /// Grants what can be granted, and drops the queue if there is none any more.
    pub(super) fn settle(&mut self) -> Outcome {
        let Entry::Queued(queue) = self else { return Outcome::default() };
        let granted = queue.grant();
        let is_free = queue.is_free();
        if let Some((txn, modes)) = queue.sole() {
            *self = Entry::Sole { txn, modes };
        }
        Outcome { granted, is_free }
    }

    /// The queue, made if there was none.
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
