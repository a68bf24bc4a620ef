//! Deadlock detection: the waits-for graph and the search for cycles in it.

use std::collections::{HashMap, VecDeque};

use super::lock_entry::LockEntry;
use super::mode::ModeBits;
use super::{LockManager, LockMode, Resource, TxnId};

/// Edge of a cycle: a transaction, the lock that it waits for, and the transaction that blocks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitEdge {
    pub waiter: TxnId,
    pub resource: Resource,
    pub mode: LockMode,
    pub blocker: TxnId,
    /// True if the blocker does not hold the lock, but is only ahead in the queue.
    pub is_queued: bool,
}

/// Waits-for graph: the request of each waiting transaction.
#[derive(Debug, Default)]
pub(super) struct WaitsForGraph {
    waits: HashMap<TxnId, (Resource, ModeBits)>,
    last_ticket: u64,
}

impl WaitsForGraph {
    pub(super) const fn next_ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    pub(super) fn add_wait(&mut self, txn: TxnId, resource: &Resource, request: ModeBits) {
        self.waits.insert(txn, (resource.clone(), request));
    }

    pub(super) fn remove_wait(&mut self, txn: TxnId) {
        self.waits.remove(&txn);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }
}

/// Record of how thoroughly one search has visited a queue.
#[derive(Clone, Copy, Default)]
struct QueueVisit {
    /// Modes whose conflicting holders and waiters were visited.
    modes: u8,
    /// True if the queue was visited up to its last waiter, other than the transaction that started the search.
    is_complete: bool,
}

impl LockManager {
    /// Searches for a cycle through `start`, which has just begun to wait. If a cycle exists only because of the order
    /// of a queue, the queue is reordered; otherwise the cycle is returned.
    pub(super) fn resolve_deadlock(&self, graph: &mut WaitsForGraph, start: TxnId) -> Option<Vec<WaitEdge>> {
        let circle = self.find_cycle(graph, start)?;
        for step in circle.iter().filter(|step| step.is_queued) {
            let Some((back, _)) = self.move_ahead(&step.resource, step.waiter, step.blocker) else { continue };
            // An overtaken waiter now waits for the one that overtook it, so a new cycle would contain that one.
            if self.find_cycle(graph, start).is_none() && self.find_cycle(graph, step.waiter).is_none() {
                self.change_entry(graph, &step.resource, LockEntry::grant_waiting);
                return None;
            }
            self.with_queue(&step.resource, |queue| queue.reorder(step.waiter, back));
        }
        Some(circle)
    }

    /// Returns the transactions that block `txn` now.
    #[must_use]
    pub fn blockers(&self, txn: TxnId) -> Vec<TxnId> {
        let graph = self.waits_for_graph.lock();
        let Some((resource, request)) = graph.waits.get(&txn) else { return Vec::new() };
        let mut blockers: Vec<_> =
            self.find_blockers(txn, resource, *request).0.into_iter().map(|(blocker, _)| blocker).collect();
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// Returns the shortest cycle of waits through `start`.
    fn find_cycle(&self, graph: &WaitsForGraph, start: TxnId) -> Option<Vec<WaitEdge>> {
        let mut reached: HashMap<TxnId, WaitEdge> = HashMap::new();
        let mut seen: HashMap<&Resource, QueueVisit> = HashMap::new();
        let mut todo = VecDeque::from([start]);
        while let Some(waiter) = todo.pop_front() {
            let Some((resource, request)) = graph.waits.get(&waiter) else { continue };
            let modes_before = seen.get(resource).copied().unwrap_or_default();
            if modes_before.is_complete && request.conflicts & !modes_before.modes == 0 {
                continue;
            }
            let (blockers, behind) = self.find_blockers(waiter, resource, *request);
            // The queue as visited by `start` does not contain `start` itself.
            if waiter != start && behind.iter().all(|txn| *txn == start) {
                seen.insert(resource, QueueVisit { modes: modes_before.modes | request.conflicts, is_complete: true });
            }
            for (blocker, is_queued) in blockers {
                let mode = resource.mode(request.bit);
                let step = WaitEdge { waiter, resource: resource.clone(), mode, blocker, is_queued };
                if blocker == start {
                    return Some(trace_cycle(&reached, start, step));
                }
                if let std::collections::hash_map::Entry::Vacant(place) = reached.entry(blocker) {
                    place.insert(step);
                    todo.push_back(blocker);
                }
            }
        }
        None
    }

    /// Returns the blockers of a waiter, holders first and then conflicting waiters ahead of it from last to first,
    /// each with whether it is only queued; and the waiters behind it.
    fn find_blockers(&self, waiter: TxnId, resource: &Resource, request: ModeBits) -> (Vec<(TxnId, bool)>, Vec<TxnId>) {
        self.with_queue(resource, |queue| {
            let is_held = |(holder, modes): &&(TxnId, u8)| *holder != waiter && modes & request.conflicts != 0;
            let mut blockers: Vec<_> = queue.holders().iter().filter(is_held).map(|(txn, _)| (*txn, false)).collect();
            let mut behind = Vec::new();
            let mut is_ahead = false;
            for other in queue.waiters().iter().rev() {
                if other.txn == waiter {
                    is_ahead = true;
                } else if !is_ahead {
                    behind.push(other.txn);
                } else if other.request.bit & request.conflicts != 0 {
                    blockers.push((other.txn, true));
                }
            }
            (blockers, behind)
        })
        .unwrap_or_default()
    }

    /// Moves a waiter directly ahead of another; returns its old and its new position.
    fn move_ahead(&self, resource: &Resource, waiter: TxnId, other: TxnId) -> Option<(usize, usize)> {
        self.with_queue(resource, |queue| {
            let to = queue.waiters().iter().position(|waiter| waiter.txn == other)?;
            queue.reorder(waiter, to).map(|from| (from, to))
        })
        .flatten()
    }

    fn with_queue<R>(&self, resource: &Resource, read: impl FnOnce(&mut super::queue::LockQueue) -> R) -> Option<R> {
        match self.lock_map(resource).get_mut(resource) {
            Some(LockEntry::Queued(queue)) => Some(read(queue)),
            _ => None,
        }
    }
}

/// Returns the edges from `start` to `last`, which leads back to it.
fn trace_cycle(reached: &HashMap<TxnId, WaitEdge>, start: TxnId, last: WaitEdge) -> Vec<WaitEdge> {
    let mut steps = vec![last];
    while let Some(step) = steps.last().filter(|step| step.waiter != start).and_then(|step| reached.get(&step.waiter)) {
        steps.push(step.clone());
    }
    steps.reverse();
    steps
}
