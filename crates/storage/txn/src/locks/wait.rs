//! Waiting for a lock: how it begins, and the ways it ends.

use std::time::Duration;

use tokio::sync::oneshot;

use super::deadlock::Graph;
use super::entry::{Attempt, Entry, Outcome};
use super::mode::Request;
use super::queue::Waiter;
use super::{LockError, LockManager, Resource, TxnId};

/// A place in a queue, given up on drop.
struct Place<'a> {
    locks: &'a LockManager,
    txn: TxnId,
    resource: &'a Resource,
    ticket: u64,
    /// What the transaction held before.
    before: u8,
    is_settled: bool,
}

enum Entered<'a> {
    /// Nobody was in the way any more: `before` as in [`Attempt::Granted`], `None` as in [`Attempt::Had`].
    Granted(Option<u8>),
    Waiting(Place<'a>, oneshot::Receiver<()>),
}

impl LockManager {
    /// Waits until the lock is the transaction's, and returns what it held before; `None` if it had the lock already.
    pub(super) async fn wait_for(
        &self,
        txn: TxnId,
        resource: &Resource,
        request: Request,
        timeout: Option<Duration>,
    ) -> Result<Option<u8>, LockError> {
        let (mut place, granted) = match self.enter(txn, resource, request)? {
            Entered::Granted(before) => return Ok(before),
            Entered::Waiting(place, granted) => (place, granted),
        };
        match timeout {
            None => granted.await.expect("a waiter is dropped only by its own place"),
            Some(timeout) => tokio::select! {
                biased;
                granted = granted => granted.expect("a waiter is dropped only by its own place"),
                () = self.clock.sleep(timeout) => {
                    if place.leave() {
                        return Err(LockError::Timeout { resource: resource.clone() });
                    }
                }
            },
        }
        place.is_settled = true;
        Ok(Some(place.before))
    }

    /// Enters the queue, unless the waiting would have no end.
    fn enter<'a>(&'a self, txn: TxnId, resource: &'a Resource, request: Request) -> Result<Entered<'a>, LockError> {
        let (wake, granted) = oneshot::channel();
        let since_us = self.clock.now_us();
        let mut graph = self.graph.lock();
        let ticket = graph.ticket();
        let before = {
            let mut shard = self.shard(resource);
            let entry = shard.entry(resource.clone()).or_insert(Entry::Sole { txn, modes: 0 });
            match entry.attempt(txn, request) {
                Attempt::Had => return Ok(Entered::Granted(None)),
                Attempt::Granted { before } => return Ok(Entered::Granted(Some(before))),
                Attempt::Blocked => {}
            }
            let queue = entry.queue();
            queue.enter(Waiter { txn, ticket, request, since_us, wake });
            queue.held_by(txn)
        };
        graph.enter(txn, resource, request);
        let mut place = Place { locks: self, txn, resource, ticket, before, is_settled: false };
        if let Some(circle) = self.untangle(&mut graph, txn) {
            place.leave_graph(&mut graph);
            place.is_settled = true;
            return Err(LockError::Deadlock { circle });
        }
        Ok(Entered::Waiting(place, granted))
    }
}

impl Place<'_> {
    /// Leaves the queue. False if the lock had been granted: it is the transaction's then.
    fn leave(&mut self) -> bool {
        let locks = self.locks;
        self.is_settled = true;
        self.leave_graph(&mut locks.graph.lock())
    }

    fn leave_graph(&self, graph: &mut Graph) -> bool {
        let mut was_waiting = false;
        self.locks.change(graph, self.resource, |entry| {
            let Entry::Queued(queue) = entry else { return Outcome::default() };
            was_waiting = queue.leave(self.ticket).is_some();
            entry.settle()
        });
        if was_waiting {
            graph.leave(self.txn);
        }
        was_waiting
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let mut graph = self.locks.graph.lock();
        if !self.leave_graph(&mut graph) {
            // Granted, but nobody was there to take it.
            self.locks.change(&mut graph, self.resource, |entry| entry.restore(self.txn, self.before));
        }
    }
}
