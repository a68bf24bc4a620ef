//! Turns on the threads: as many at a time as there are threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use types::Clock;

use super::queue::Queue;
use super::task::Task;

/// Gives turns. Asked when a task wakes and when a turn ends, not for each batch.
pub(super) struct Turns {
    state: Mutex<State>,
    /// The youngest level in which somebody waits; [`NOBODY`] where nobody does.
    youngest: AtomicU8,
    clock: Arc<dyn Clock>,
    /// How many may compute at length beside those that have turns.
    long: Mutex<usize>,
    long_ended: Condvar,
}

const NOBODY: u8 = u8::MAX;

/// Gives the place of a computation back, also of one that panics.
struct Ended<'a>(&'a Turns);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *self.0.long.lock() += 1;
        self.0.long_ended.notify_one();
    }
}

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
            long: Mutex::new((count / 2).max(1)),
            long_ended: Condvar::new(),
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

    /// Computes beside those that have turns, as soon as few enough others do. Blocks the thread.
    pub(super) fn at_length<T>(&self, compute: impl FnOnce() -> T) -> T {
        let mut free = self.long.lock();
        self.long_ended.wait_while(&mut free, |free| *free == 0);
        *free -= 1;
        drop(free);
        let _ended = Ended(self);
        compute()
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
