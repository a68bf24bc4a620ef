//! Turns on the threads: as many at a time as there are cores. Young queries do not wait for older ones that cannot pause
//! early: where all turns are taken they get further ones, and who is old pauses as soon as it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
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
    /// More have turns than there are cores.
    is_crowded: AtomicBool,
    clock: Arc<dyn Clock>,
    /// For old queries that compute at length beside those that have turns.
    places: Arc<Semaphore>,
}

const NOBODY: u8 = u8::MAX;

struct State {
    /// The cores.
    count: usize,
    /// Those that have turns; and of them who was young when it got its own.
    taken: usize,
    taken_by_young: usize,
    waiting: Queue<Arc<Task>>,
}

impl State {
    /// Whose turn is next, if one is free for it, and whether its query is young.
    fn next(&mut self) -> Option<(Arc<Task>, bool)> {
        if self.taken < self.count {
            let task = self.waiting.pop()?;
            let is_young = task.query.is_young();
            return Some((task, is_young));
        }
        while self.taken_by_young < self.count
            && let Some(task) = self.waiting.pop_young()
        {
            if task.query.is_young() {
                return Some((task, true));
            }
            // It was young when it began to wait.
            self.waiting.push(&Arc::clone(&task.query), task);
        }
        None
    }

    fn take_back(&mut self, was_young: bool) {
        self.taken -= 1;
        self.taken_by_young -= usize::from(was_young);
    }
}

impl Turns {
    pub(super) fn new(count: usize, clock: &Arc<dyn Clock>) -> Arc<Self> {
        let state = State { count, taken: 0, taken_by_young: 0, waiting: Queue::default() };
        Arc::new(Self {
            state: Mutex::new(state),
            youngest: AtomicU8::new(NOBODY),
            is_crowded: AtomicBool::new(false),
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
    pub(super) fn end(&self, task: &Task, level: u8, time: Duration) {
        self.give(|state| {
            state.take_back(task.was_young());
            state.waiting.count(level, time);
        });
    }

    /// Takes a turn back, and queues the task that had it.
    pub(super) fn end_and_queue(&self, task: Arc<Task>, level: u8, time: Duration) {
        self.give(|state| {
            state.take_back(task.was_young());
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
        while let Some((task, is_young)) = state.next() {
            // A task that has gone has no use for it.
            if task.take_turn(is_young) {
                state.taken += 1;
                state.taken_by_young += usize::from(is_young);
                // Whoever is woken may ask at once.
                parking_lot::MutexGuard::unlocked(&mut state, || task.call());
            }
        }
        let youngest = state.waiting.first().and_then(|level| u8::try_from(level).ok());
        self.youngest.store(youngest.unwrap_or(NOBODY), Ordering::Relaxed);
        self.is_crowded.store(state.count < state.taken, Ordering::Relaxed);
    }

    /// Whether young queries have turns beside old ones, which are to pause.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// Whether somebody waits, but nobody younger than a level.
    pub(super) fn are_old(&self, level: u8) -> bool {
        let youngest = self.youngest.load(Ordering::Relaxed);
        youngest != NOBODY && level <= youngest
    }

    /// Turns that nobody has.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        let state = self.state.lock();
        state.count - state.taken
    }
}
