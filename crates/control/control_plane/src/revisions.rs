//! A number that grows with each change of something, and can be waited for by any executor.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

#[cfg(test)]
mod tests;

/// Counts changes. Nobody who waits misses one: what is waited for is a number, not a signal.
#[derive(Debug, Default)]
pub struct Revisions {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    current: u64,
    next_waiter: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Revisions {
    /// How many changes there were.
    #[must_use]
    pub fn current(&self) -> u64 {
        self.waiting.lock().current
    }

    /// Says that something has changed, and wakes all who wait.
    pub fn advance(&self) -> u64 {
        let (current, wakers) = {
            let mut waiting = self.waiting.lock();
            waiting.current += 1;
            (waiting.current, std::mem::take(&mut waiting.wakers))
        };
        wakers.into_values().for_each(Waker::wake);
        current
    }

    /// Completes with the current number once it is above `seen`.
    pub fn after(&self, seen: u64) -> After<'_> {
        After { revisions: self, seen, waiter: None }
    }
}

/// Waits for a number above one that was seen. Dropping it leaves nothing behind.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct After<'a> {
    revisions: &'a Revisions,
    seen: u64,
    waiter: Option<u64>,
}

impl Future for After<'_> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let mut waiting = self.revisions.waiting.lock();
        if self.seen < waiting.current {
            // Its waker went with the change.
            self.waiter = None;
            return Poll::Ready(waiting.current);
        }
        let waiter = self.waiter.unwrap_or_else(|| {
            waiting.next_waiter += 1;
            waiting.next_waiter
        });
        let old = waiting.wakers.insert(waiter, context.waker().clone());
        drop(waiting);
        // A waker may come back here when it is dropped.
        drop(old);
        self.waiter = Some(waiter);
        Poll::Pending
    }
}

impl Drop for After<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter {
            let waker = self.revisions.waiting.lock().wakers.remove(&waiter);
            drop(waker);
        }
    }
}
