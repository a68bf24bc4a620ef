//! A change counter that tasks of any executor can wait on.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

#[cfg(test)]
mod tests;

/// Change counter. Waiting for a number above one that was seen cannot miss a change.
#[derive(Debug, Default)]
pub struct Revisions {
    state: Mutex<RevisionState>,
}

#[derive(Debug, Default)]
struct RevisionState {
    current: u64,
    next_waiter_id: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Revisions {
    /// Returns the number of changes so far.
    #[must_use]
    pub fn current(&self) -> u64 {
        self.state.lock().current
    }

    /// Counts a change, wakes all waiting tasks, and returns the new number.
    pub fn advance(&self) -> u64 {
        let (current, wakers) = {
            let mut waiting = self.state.lock();
            waiting.current += 1;
            (waiting.current, std::mem::take(&mut waiting.wakers))
        };
        wakers.into_values().for_each(Waker::wake);
        current
    }

    /// Returns a future that completes with the current number once it is above `seen`.
    pub fn wait_for_newer(&self, seen: u64) -> RevisionWait<'_> {
        RevisionWait { revisions: self, seen, waiter_id: None }
    }
}

/// Future that waits for a number above `seen`. Dropping it removes its waker.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct RevisionWait<'a> {
    revisions: &'a Revisions,
    seen: u64,
    waiter_id: Option<u64>,
}

impl Future for RevisionWait<'_> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let mut waiting = self.revisions.state.lock();
        if self.seen < waiting.current {
            // `advance` has removed its waker.
            self.waiter_id = None;
            return Poll::Ready(waiting.current);
        }
        let waiter = self.waiter_id.unwrap_or_else(|| {
            waiting.next_waiter_id += 1;
            waiting.next_waiter_id
        });
        let old = waiting.wakers.insert(waiter, context.waker().clone());
        drop(waiting);
        // Outside the lock, because dropping a waker may call back into this module.
        drop(old);
        self.waiter_id = Some(waiter);
        Poll::Pending
    }
}

impl Drop for RevisionWait<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter_id {
            let waker = self.revisions.state.lock().wakers.remove(&waiter);
            drop(waker);
        }
    }
}
