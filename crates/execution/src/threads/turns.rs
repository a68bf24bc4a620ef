//! Turns on the threads: as many at a time as there are threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use types::Clock;

use super::queue::Queue;
use super::task::Task;

/// Gives turns. Asked when a task wakes and when a turn ends, not for each batch.
pub(super) struct Turns {
    state: Mutex<State>,
    /// The youngest level in which somebody waits; [`NOBODY`] where nobody does.
    youngest: AtomicU8,
    clock: Arc<dyn Clock>,
    /// For old queries that compute at length beside those that have turns.
    places: Arc<Semaphore>,
}

const NOBODY: u8 = u8::MAX;

struct State {
    free: usize,
    waiting: Queue<Arc<Task>>,
}

impl Turns {
    pub(super) fn new(count: usize, clock: &Arc<dyn Clock>) -> Arc<Self> {
        let state = State { free: count, waiting: Queue::default() };
        Arc::new(Self {
            state: Mutex::new(state),
            youngest: AtomicU8::new(NOBODY),
            clock: Arc::clone(clock),
            places: Arc::new(Semaphore::new((count / 2).max(1))),
        })
    }

    /// What tells the time.
    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Time since the clock's start.
    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Puts a task in the queue.
    pub(super) fn queue(&self, task: Arc<Task>) {
        self.give(|state| state.waiting.push(&task.query, Arc::clone(&task)));
    }

    /// Takes a turn back, which a query of this level has had for so long.
    pub(super) fn end(&self, level: u8, time: Duration) {
        self.give(|state| {
            state.free += 1;
            state.waiting.count(level, time);
        });
    }

    /// Takes a turn back, and queues the task that had it.
    pub(super) fn end_and_queue(&self, task: Arc<Task>, level: u8, time: Duration) {
        self.give(|state| {
            state.free += 1;
            state.waiting.count(level, time);
            state.waiting.push(&task.query, Arc::clone(&task));
        });
    }

    /// A place beside those that have turns, as soon as one is free.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.places).acquire_owned().await.expect("places are there as long as the threads")
    }

    /// Gives the turns that are free after a change.
    fn give(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        while 0 < state.free
            && let Some(task) = state.waiting.pop()
        {
            // A task that has gone has no use for it.
            if task.take_turn() {
                state.free -= 1;
                // Whoever is woken may ask at once.
                parking_lot::MutexGuard::unlocked(&mut state, || task.call());
            }
        }
        let youngest = state.waiting.first().and_then(|level| u8::try_from(level).ok());
        self.youngest.store(youngest.unwrap_or(NOBODY), Ordering::Relaxed);
    }

    /// Whether somebody waits, but nobody younger than a level.
    pub(super) fn are_old(&self, level: u8) -> bool {
        let youngest = self.youngest.load(Ordering::Relaxed);
        youngest != NOBODY && level <= youngest
    }

    /// Turns that nobody has.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.state.lock().free
    }
}
