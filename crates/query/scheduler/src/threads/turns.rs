//! Grants turns: as many at a time as there are cores. Young queries do not wait for old ones that cannot yield soon:
//! they get extra turns, and old queries yield as soon as possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use types::Clock;

use super::query_task::Task;
use super::turn_queue::Queue;

/// Grants turns when tasks wake and when turns end, not for each batch.
pub(super) struct Turns {
    state: Mutex<State>,
    /// First level with waiting tasks; [`NO_LEVEL`] if there is none.
    youngest_waiting_level: AtomicU8,
    /// True while more tasks have turns than there are cores.
    has_extra_turns: AtomicBool,
    clock: Arc<dyn Clock>,
    /// Permits for long computations of old queries, which run without turns.
    long_run_permits: Arc<Semaphore>,
}

const NO_LEVEL: u8 = u8::MAX;

struct State {
    /// Number of cores.
    core_count: usize,
    /// Number of granted turns, and of those granted to young queries.
    granted: usize,
    granted_to_young: usize,
    waiting: Queue<Arc<Task>>,
}

impl State {
    /// Returns the task that gets the next turn, if one is free for it, and whether its query is young.
    fn next(&mut self) -> Option<(Arc<Task>, bool)> {
        if self.granted < self.core_count {
            let task = self.waiting.pop()?;
            let is_young = task.query.is_young();
            return Some((task, is_young));
        }
        while self.granted_to_young < self.core_count
            && let Some(task) = self.waiting.pop_young()
        {
            if task.query.is_young() {
                return Some((task, true));
            }
            // Its query was young when it began to wait.
            self.waiting.push(&Arc::clone(&task.query), task);
        }
        None
    }

    /// Takes back a turn.
    fn take_back(&mut self, was_young: bool) {
        self.granted -= 1;
        self.granted_to_young -= usize::from(was_young);
    }
}

impl Turns {
    /// Returns an instance that grants `count` turns at a time.
    pub(super) fn new(count: usize, clock: &Arc<dyn Clock>) -> Arc<Self> {
        let state = State { core_count: count, granted: 0, granted_to_young: 0, waiting: Queue::default() };
        Arc::new(Self {
            state: Mutex::new(state),
            youngest_waiting_level: AtomicU8::new(NO_LEVEL),
            has_extra_turns: AtomicBool::new(false),
            clock: Arc::clone(clock),
            long_run_permits: Arc::new(Semaphore::new((count / 2).max(1))),
        })
    }

    /// Returns the clock.
    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the time since the clock's start.
    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Queues a task.
    pub(super) fn queue(&self, task: Arc<Task>) {
        self.change_and_grant(|state| state.waiting.push(&task.query, Arc::clone(&task)));
    }

    /// Takes back the turn of a task, after `time` on this level.
    pub(super) fn end_turn(&self, task: &Task, level: u8, time: Duration) {
        self.change_and_grant(|state| {
            state.take_back(task.was_young());
            state.waiting.account_turn(level, time);
        });
    }

    /// Takes back the turn of a task and queues it again.
    pub(super) fn end_and_queue(&self, task: Arc<Task>, level: u8, time: Duration) {
        self.change_and_grant(|state| {
            state.take_back(task.was_young());
            state.waiting.account_turn(level, time);
            state.waiting.push(&task.query, Arc::clone(&task));
        });
    }

    /// Waits for a permit for a long computation.
    pub(super) async fn long_run_permit(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.long_run_permits)
            .acquire_owned()
            .await
            .expect("the semaphore of long computations is never closed")
    }

    /// Applies a change and grants the free turns.
    fn change_and_grant(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        while let Some((task, is_young)) = state.next() {
            // A task that is gone needs no turn.
            if task.take_turn(is_young) {
                state.granted += 1;
                state.granted_to_young += usize::from(is_young);
                // The waker may run the task at once.
                parking_lot::MutexGuard::unlocked(&mut state, || task.wake_runtime());
            }
        }
        let youngest = state.waiting.first_level().and_then(|level| u8::try_from(level).ok());
        self.youngest_waiting_level.store(youngest.unwrap_or(NO_LEVEL), Ordering::Relaxed);
        self.has_extra_turns.store(state.core_count < state.granted, Ordering::Relaxed);
    }

    /// Returns whether young queries have extra turns, so that old ones have to yield.
    pub(super) fn has_extra_turns(&self) -> bool {
        self.has_extra_turns.load(Ordering::Relaxed)
    }

    /// Returns whether tasks wait, but none on a level before `level`.
    pub(super) fn only_older_wait(&self, level: u8) -> bool {
        let youngest = self.youngest_waiting_level.load(Ordering::Relaxed);
        youngest != NO_LEVEL && level <= youngest
    }

    /// Returns the number of free turns.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        let state = self.state.lock();
        state.core_count - state.granted
    }
}
