//! Waiting for a lock: entering the queue, and being granted, timing out or being cancelled.

use std::time::Duration;

use tokio::sync::oneshot;

use super::deadlock::WaitsForGraph;
use super::lock_entry::{Attempt, ChangeEffect, LockEntry};
use super::mode::ModeBits;
use super::queue::Waiter;
use super::{LockError, LockManager, Resource, TxnId};

/// Position of a waiter in a queue; leaves the queue on drop.
struct QueuePosition<'a> {
    locks: &'a LockManager,
    txn: TxnId,
    resource: &'a Resource,
    ticket: u64,
    /// Modes that the transaction held before.
    modes_before: u8,
    has_left_queue: bool,
}

enum EnterResult<'a> {
    /// Acquired without waiting: `modes_before` as in [`Attempt::Granted`], `None` as in [`Attempt::AlreadyHeld`].
    Granted(Option<u8>),
    Waiting(QueuePosition<'a>, oneshot::Receiver<()>),
}

impl LockManager {
    /// Waits until the lock is acquired and returns the modes held before; `None` if the transaction had the lock
    /// already.
    pub(super) async fn wait_for(
        &self,
        txn: TxnId,
        resource: &Resource,
        request: ModeBits,
        timeout: Option<Duration>,
    ) -> Result<Option<u8>, LockError> {
        let (mut place, granted) = match self.enter(txn, resource, request)? {
            EnterResult::Granted(modes_before) => return Ok(modes_before),
            EnterResult::Waiting(place, granted) => (place, granted),
        };
        match timeout {
            None => granted.await.expect("only its own Place drops a waiter"),
            Some(timeout) => tokio::select! {
                biased;
                granted = granted => granted.expect("only its own Place drops a waiter"),
                () = self.clock.sleep(timeout) => {
                    if place.leave() {
                        return Err(LockError::Timeout { resource: resource.clone() });
                    }
                }
            },
        }
        place.has_left_queue = true;
        Ok(Some(place.modes_before))
    }

    /// Enters the queue; fails with [`LockError::Deadlock`] if the wait would never end.
    fn enter<'a>(
        &'a self,
        txn: TxnId,
        resource: &'a Resource,
        request: ModeBits,
    ) -> Result<EnterResult<'a>, LockError> {
        let (wake, granted) = oneshot::channel();
        let since_us = self.clock.now_us();
        let mut graph = self.waits_for_graph.lock();
        let ticket = graph.next_ticket();
        let modes_before = {
            let mut shard = self.lock_map(resource);
            let entry = shard.entry(resource.clone()).or_insert(LockEntry::SingleHolder { txn, modes: 0 });
            match entry.try_lock(txn, request) {
                Attempt::AlreadyHeld => return Ok(EnterResult::Granted(None)),
                Attempt::Granted { modes_before } => return Ok(EnterResult::Granted(Some(modes_before))),
                Attempt::Blocked => {}
            }
            let queue = entry.queue();
            queue.insert_waiter(Waiter { txn, ticket, request, since_us, wake });
            queue.held_modes(txn)
        };
        graph.add_wait(txn, resource, request);
        let mut place = QueuePosition { locks: self, txn, resource, ticket, modes_before, has_left_queue: false };
        if let Some(circle) = self.resolve_deadlock(&mut graph, txn) {
            place.leave_graph(&mut graph);
            place.has_left_queue = true;
            return Err(LockError::Deadlock { cycle: circle });
        }
        Ok(EnterResult::Waiting(place, granted))
    }
}

impl QueuePosition<'_> {
    /// Leaves the queue. Returns false if the lock has been granted: the transaction holds it then.
    fn leave(&mut self) -> bool {
        let locks = self.locks;
        self.has_left_queue = true;
        self.leave_graph(&mut locks.waits_for_graph.lock())
    }

    fn leave_graph(&self, graph: &mut WaitsForGraph) -> bool {
        let mut was_waiting = false;
        self.locks.change_entry(graph, self.resource, |entry| {
            let LockEntry::Queued(queue) = entry else { return ChangeEffect::default() };
            was_waiting = queue.remove_waiter(self.ticket).is_some();
            entry.grant_waiting()
        });
        if was_waiting {
            graph.remove_wait(self.txn);
        }
        was_waiting
    }
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        if self.has_left_queue {
            return;
        }
        let mut graph = self.locks.waits_for_graph.lock();
        if !self.leave_graph(&mut graph) {
            // Granted, but cancelled before the waiter has noticed.
            self.locks.change_entry(&mut graph, self.resource, |entry| entry.restore(self.txn, self.modes_before));
        }
    }
}
