//! Holders and waiters of one contended resource.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use super::TxnId;
use super::lock_entry::Attempt;
use super::mode::ModeBits;

/// Queue of a resource. No request overtakes another that it conflicts with, except that a holder that requests a
/// stronger mode goes ahead of those that wait for its current lock anyway.
#[derive(Debug)]
pub(super) struct LockQueue {
    holders: Vec<(TxnId, u8)>,
    waiters: VecDeque<Waiter>,
}

/// Waiting lock request.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) txn: TxnId,
    /// Number of this wait, as the transaction may wait for the same resource again later.
    pub(super) ticket: u64,
    pub(super) request: ModeBits,
    pub(super) since_us: i64,
    pub(super) wake: oneshot::Sender<()>,
}

impl Waiter {
    /// Signals that the lock is granted. If the receiver was dropped, its drop releases the lock.
    pub(super) fn wake(self) {
        let _ = self.wake.send(());
    }
}

impl LockQueue {
    pub(super) fn new(txn: TxnId, modes: u8) -> LockQueue {
        LockQueue { holders: vec![(txn, modes)], waiters: VecDeque::new() }
    }

    pub(super) fn try_lock(&mut self, txn: TxnId, request: ModeBits) -> Attempt {
        let modes_before = self.held_modes(txn);
        if modes_before & request.covered_by != 0 {
            return Attempt::AlreadyHeld;
        }
        let place = self.queue_position(modes_before);
        let is_behind = self.waiters.range(..place).any(|waiter| waiter.request.bit & request.conflicts != 0);
        if is_behind || self.is_blocked_by_holder(txn, request) {
            return Attempt::Blocked;
        }
        self.set_modes(txn, modes_before | request.bit);
        Attempt::Granted { modes_before }
    }

    /// Inserts a waiter at its position.
    pub(super) fn insert_waiter(&mut self, waiter: Waiter) {
        let place = self.queue_position(self.held_modes(waiter.txn));
        self.waiters.insert(place, waiter);
    }

    /// Removes a waiter; `None` if its request has been granted.
    pub(super) fn remove_waiter(&mut self, ticket: u64) -> Option<Waiter> {
        let position = self.waiters.iter().position(|waiter| waiter.ticket == ticket)?;
        self.waiters.remove(position)
    }

    /// Turns waiters into holders if nothing blocks them any more, and returns them.
    pub(super) fn grant(&mut self) -> Vec<Waiter> {
        let mut granted = Vec::new();
        let (mut position, mut ahead) = (0, 0);
        while position < self.waiters.len() {
            let (txn, request) = (self.waiters[position].txn, self.waiters[position].request);
            if request.conflicts & ahead != 0 || self.is_blocked_by_holder(txn, request) {
                ahead |= request.bit;
                position += 1;
            } else {
                self.set_modes(txn, self.held_modes(txn) | request.bit);
                granted.extend(self.waiters.remove(position));
            }
        }
        granted
    }

    /// Sets the modes that a transaction holds.
    pub(super) fn restore(&mut self, txn: TxnId, modes: u8) {
        if modes != 0 {
            self.set_modes(txn, modes);
        } else if let Some(position) = self.holders.iter().position(|(holder, _)| *holder == txn) {
            self.holders.swap_remove(position);
        }
    }

    /// Moves a waiter to `position` and returns its former position.
    pub(super) fn reorder(&mut self, txn: TxnId, position: usize) -> Option<usize> {
        let from = self.waiters.iter().position(|waiter| waiter.txn == txn)?;
        let waiter = self.waiters.remove(from)?;
        self.waiters.insert(position.min(self.waiters.len()), waiter);
        Some(from)
    }

    pub(super) fn held_modes(&self, txn: TxnId) -> u8 {
        self.holders.iter().find(|(holder, _)| *holder == txn).map_or(0, |(_, modes)| *modes)
    }

    pub(super) fn holders(&self) -> &[(TxnId, u8)] {
        &self.holders
    }

    pub(super) const fn waiters(&self) -> &VecDeque<Waiter> {
        &self.waiters
    }

    pub(super) fn is_free(&self) -> bool {
        self.holders.is_empty() && self.waiters.is_empty()
    }

    /// Returns the only holder if there is exactly one and nothing waits.
    pub(super) fn only_holder(&self) -> Option<(TxnId, u8)> {
        match self.holders[..] {
            [sole] if self.waiters.is_empty() => Some(sole),
            _ => None,
        }
    }

    fn set_modes(&mut self, txn: TxnId, modes: u8) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == txn) {
            Some((_, held)) => *held = modes,
            None => self.holders.push((txn, modes)),
        }
    }

    /// Returns the queue position of a request by a holder of `modes`: ahead of the first waiter that `modes` blocks.
    fn queue_position(&self, modes: u8) -> usize {
        let first = self.waiters.iter().position(|waiter| waiter.request.conflicts & modes != 0);
        first.unwrap_or(self.waiters.len())
    }

    fn is_blocked_by_holder(&self, txn: TxnId, request: ModeBits) -> bool {
        self.holders.iter().any(|(holder, modes)| *holder != txn && modes & request.conflicts != 0)
    }
}
