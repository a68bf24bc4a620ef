//! Who waits for whom, and whether it goes round in a circle.

use std::collections::{HashMap, VecDeque};

use super::entry::Entry;
use super::mode::Request;
use super::{LockManager, LockMode, Resource, TxnId};

/// One step of a circle: a transaction, what it waits for and who is in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitsFor {
    pub waiter: TxnId,
    pub resource: Resource,
    pub mode: LockMode,
    pub blocker: TxnId,
    /// Whether the blocker only stands ahead in the queue, and does not hold what is waited for.
    pub is_queued: bool,
}

/// Who waits for what.
#[derive(Debug, Default)]
pub(super) struct Graph {
    waits: HashMap<TxnId, (Resource, Request)>,
    last_ticket: u64,
}

impl Graph {
    pub(super) const fn ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    pub(super) fn enter(&mut self, txn: TxnId, resource: &Resource, request: Request) {
        self.waits.insert(txn, (resource.clone(), request));
    }

    pub(super) fn leave(&mut self, txn: TxnId) {
        self.waits.remove(&txn);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }
}

/// How far a queue was looked through in one search.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Modes that were looked for.
    modes: u8,
    /// Whether that was on behalf of the last waiter, or of the last but the one who asks.
    is_whole: bool,
}

impl LockManager {
    /// Looks for a circle through `start`, who has just begun to wait. If one hangs on the order of a queue alone, the order is changed;
    /// otherwise it is returned.
    pub(super) fn untangle(&self, graph: &mut Graph, start: TxnId) -> Option<Vec<WaitsFor>> {
        let circle = self.circle(graph, start)?;
        for step in circle.iter().filter(|step| step.is_queued) {
            let Some((back, _)) = self.move_ahead(&step.resource, step.waiter, step.blocker) else { continue };
            // Whoever was overtaken now waits for who overtook: a new circle would go through it.
            if self.circle(graph, start).is_none() && self.circle(graph, step.waiter).is_none() {
                self.change(graph, &step.resource, Entry::settle);
                return None;
            }
            self.with_queue(&step.resource, |queue| queue.reorder(step.waiter, back));
        }
        Some(circle)
    }

    /// Whom a transaction waits for now.
    #[must_use]
    pub fn blockers(&self, txn: TxnId) -> Vec<TxnId> {
        let graph = self.graph.lock();
        let Some((resource, request)) = graph.waits.get(&txn) else { return Vec::new() };
        let mut blockers: Vec<_> =
            self.in_the_way(txn, resource, *request).0.into_iter().map(|(blocker, _)| blocker).collect();
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// The shortest circle of waiting through `start`.
    fn circle(&self, graph: &Graph, start: TxnId) -> Option<Vec<WaitsFor>> {
        let mut reached: HashMap<TxnId, WaitsFor> = HashMap::new();
        let mut seen: HashMap<&Resource, Seen> = HashMap::new();
        let mut todo = VecDeque::from([start]);
        while let Some(waiter) = todo.pop_front() {
            let Some((resource, request)) = graph.waits.get(&waiter) else { continue };
            let before = seen.get(resource).copied().unwrap_or_default();
            if before.is_whole && request.conflicts & !before.modes == 0 {
                continue;
            }
            let (blockers, behind) = self.in_the_way(waiter, resource, *request);
            // What `start` looked through lacks `start` itself.
            if waiter != start && behind.iter().all(|txn| *txn == start) {
                seen.insert(resource, Seen { modes: before.modes | request.conflicts, is_whole: true });
            }
            for (blocker, is_queued) in blockers {
                let mode = resource.mode(request.bit);
                let step = WaitsFor { waiter, resource: resource.clone(), mode, blocker, is_queued };
                if blocker == start {
                    return Some(trace(&reached, start, step));
                }
                if let std::collections::hash_map::Entry::Vacant(place) = reached.entry(blocker) {
                    place.insert(step);
                    todo.push_back(blocker);
                }
            }
        }
        None
    }

    /// Who is in a waiter's way, holders first, then who stands ahead of it from the last to the first; and who stands behind it.
    fn in_the_way(&self, waiter: TxnId, resource: &Resource, request: Request) -> (Vec<(TxnId, bool)>, Vec<TxnId>) {
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

    /// Moves a waiter right ahead of another; returns where it was and where it is.
    fn move_ahead(&self, resource: &Resource, waiter: TxnId, other: TxnId) -> Option<(usize, usize)> {
        self.with_queue(resource, |queue| {
            let to = queue.waiters().iter().position(|waiter| waiter.txn == other)?;
            queue.reorder(waiter, to).map(|from| (from, to))
        })
        .flatten()
    }

    fn with_queue<R>(&self, resource: &Resource, read: impl FnOnce(&mut super::queue::Queue) -> R) -> Option<R> {
        match self.shard(resource).get_mut(resource) {
            Some(Entry::Queued(queue)) => Some(read(queue)),
            _ => None,
        }
    }
}

/// The steps from `start` to the last one, which leads back to it.
fn trace(reached: &HashMap<TxnId, WaitsFor>, start: TxnId, last: WaitsFor) -> Vec<WaitsFor> {
    let mut steps = vec![last];
    while let Some(step) = steps.last().filter(|step| step.waiter != start).and_then(|step| reached.get(&step.waiter)) {
        steps.push(step.clone());
    }
    steps.reverse();
    steps
}
