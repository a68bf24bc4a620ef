//! Task that is polled only while it has a turn.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::future::Either;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use types::allocation_counters::check_large_block_limit;
use types::interrupt::{self, canceled_error};
use types::{Clock, SqlResult, SystemClock};

use super::background::run_at_low_priority;
use super::turns::Turns;
use super::{QueryShare, stuck_threads};

/// Length of a turn, after which a task yields where it can. Among old queries turns are twice as long with each level,
/// because a query has to load its data into the CPU caches again after each turn.
const TURN_TIME: Duration = Duration::from_millis(1);

/// Time after which a computation that cannot yield loses its turn and its runtime thread. Nearly all are far shorter,
/// so that few extra threads are created.
const LONG_STEP: Duration = Duration::from_millis(20);

tokio::task_local! {
    /// Task that is being polled.
    static CURRENT: Arc<Task>;
}

/// Nothing to do until woken.
const IDLE: u8 = 0;
/// Queued for a turn.
const WAITING: u8 = 1;
/// Has a turn, but has not begun.
const GRANTED: u8 = 2;
const RUNNING: u8 = 3;
/// Woken while running: queued again after its turn.
const WOKEN: u8 = 4;
const ENDED: u8 = 5;

/// State of a task, shared with its wakers and the granting of turns.
pub(super) struct Task {
    turns: Arc<Turns>,
    pub(super) query: Arc<QueryShare>,
    /// Cancelled when nobody waits for the task any more.
    stop: CancellationToken,
    state: AtomicU8,
    /// Waker of the enclosing future, which the runtime polls.
    runtime: Mutex<Option<Waker>>,
    /// Start of the turn, in nanoseconds of the clock.
    turn_start_ns: AtomicU64,
    /// True while it runs without a turn, until it yields.
    is_without_turn: AtomicBool,
    /// True if its query was young when the turn was granted.
    was_young: AtomicBool,
}

/// Wraps `future` as a task of a query that runs in turns.
pub(super) fn run_in_turns<F: Future>(
    turns: &Arc<Turns>,
    query: &Arc<QueryShare>,
    stop: &CancellationToken,
    future: F,
) -> TurnFuture<F> {
    let task = Arc::new(Task {
        turns: Arc::clone(turns),
        query: Arc::clone(query),
        stop: stop.clone(),
        state: AtomicU8::new(IDLE),
        runtime: Mutex::default(),
        turn_start_ns: AtomicU64::new(0),
        is_without_turn: AtomicBool::new(false),
        was_young: AtomicBool::new(false),
    });
    TurnFuture { waker: Waker::from(Arc::clone(&task)), task, future: Box::pin(future), has_begun: false }
}

/// Wraps `future` as another task of the current query; returns it unchanged outside of queries.
pub fn in_same_query<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
    match CURRENT.try_with(Arc::clone) {
        Ok(task) => Either::Left(run_in_turns(&task.turns, &task.query, &task.stop, future)),
        Err(_) => Either::Right(future),
    }
}

/// Returns the clock of the current task's threads; the system clock outside of queries.
pub fn clock() -> Arc<dyn Clock> {
    static MACHINE: LazyLock<Arc<dyn Clock>> = LazyLock::new(|| Arc::new(SystemClock::new()));
    CURRENT.try_with(|task| Arc::clone(task.turns.clock())).unwrap_or_else(|_| Arc::clone(&MACHINE))
}

/// Yields if the turn is over. To be called between batches.
pub async fn yield_if_due() {
    let is_over = CURRENT.try_with(|task| task.must_yield());
    if !is_over.unwrap_or(false) {
        return tokio::task::consume_budget().await;
    }
    let mut has_paused = false;
    poll_fn(|context| {
        if has_paused {
            return Poll::Ready(());
        }
        has_paused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Blocks the thread while waiting for other tasks, which get its turn and another thread meanwhile. Needs a
/// multi-threaded runtime.
pub fn block_outside_turn<T>(wait: impl FnOnce() -> T) -> T {
    let Ok(task) = CURRENT.try_with(Arc::clone) else { return tokio::task::block_in_place(wait) };
    task.release_turn();
    stuck_threads::end_task();
    let outcome = tokio::task::block_in_place(wait);
    task.begin_turn();
    task.report_to_watchdog();
    outcome
}

/// Runs a long computation that cannot yield, without a turn and with another thread for other tasks. Old queries run
/// it at low priority.
pub fn run_long<T: Send>(compute: impl FnOnce() -> T + Send) -> T {
    let Ok(task) = CURRENT.try_with(Arc::clone) else { return compute() };
    task.release_turn();
    stuck_threads::end_task();
    let is_old = !task.query.is_young();
    let outcome = tokio::task::block_in_place(|| if is_old { run_at_low_priority(compute) } else { compute() });
    task.report_to_watchdog();
    outcome
}

/// Runs a part of a computation that cannot yield. If the computation is long, it loses its turn and continues without
/// one until it can yield; the operating system then shares the cores between such threads and those with turns.
pub(super) fn run_part(part: &mut dyn FnMut()) {
    let is_outside = CURRENT.try_with(|task| {
        if LONG_STEP <= task.turn_time() {
            task.release_turn();
        }
        let is_outside = task.is_without_turn.load(Ordering::Relaxed);
        if is_outside {
            // The watchdog should report hanging parts, not computations of many parts.
            task.report_to_watchdog();
        }
        is_outside
    });
    // Per part: the runtime moves the thread's queue to another thread only for the duration of a block, and takes it
    // back if no other thread has picked it up.
    if is_outside.unwrap_or(false) { tokio::task::block_in_place(part) } else { part() }
}

/// Checks that the current statement is not cancelled and that `bytes` more fit in memory, for code that creates large
/// values.
pub(super) fn check_large_value(bytes: usize) -> SqlResult<()> {
    if CURRENT.try_with(|task| task.stop.is_cancelled()).unwrap_or(false) {
        return Err(canceled_error());
    }
    interrupt::check()?;
    if bytes == 0 { Ok(()) } else { check_large_block_limit(bytes) }
}

/// Waits for a permit for a long computation, to be held during it: their number is limited, because they run in
/// addition to tasks with turns. Young queries need no permit.
pub async fn long_run_permit() -> Option<OwnedSemaphorePermit> {
    let task = CURRENT.try_with(Arc::clone).ok()?;
    if task.query.is_young() {
        return None;
    }
    Some(task.turns.long_run_permit().await)
}

impl Task {
    /// Accepts the turn that the task has waited for; `false` if the task is gone.
    pub(super) fn take_turn(&self, is_young: bool) -> bool {
        // Stored first: the task may run as soon as it is called.
        self.was_young.store(is_young, Ordering::Relaxed);
        self.transition(WAITING, GRANTED)
    }

    /// Returns whether the query was young when the turn was granted.
    pub(super) fn was_young(&self) -> bool {
        self.was_young.load(Ordering::Relaxed)
    }

    /// Wakes the enclosing future, so that the runtime polls it.
    pub(super) fn wake_runtime(&self) {
        let runtime = self.runtime.lock().clone();
        if let Some(runtime) = runtime {
            runtime.wake();
        }
    }

    /// Changes the state, if it is `from`.
    fn transition(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Tells the watchdog that the task has the calling thread.
    fn report_to_watchdog(&self) {
        stuck_threads::begin_task(self.query.query(), self.turns.now(), self.turns.clock());
    }

    /// Records the start of a turn.
    fn begin_turn(&self) {
        let now = u64::try_from(self.turns.now().as_nanos()).unwrap_or(u64::MAX);
        self.turn_start_ns.store(now, Ordering::Relaxed);
    }

    /// Returns the time since the start of the turn.
    fn turn_time(&self) -> Duration {
        self.turns.now().saturating_sub(Duration::from_nanos(self.turn_start_ns.load(Ordering::Relaxed)))
    }

    /// Returns whether the task has to yield.
    fn must_yield(&self) -> bool {
        if self.is_without_turn.load(Ordering::Relaxed) {
            return true;
        }
        let (lasted, level) = (self.turn_time(), self.query.level());
        if !self.was_young() && self.turns.has_extra_turns() {
            return true;
        }
        TURN_TIME <= lasted && (!self.turns.only_older_wait(level) || TURN_TIME * (1 << level) <= lasted)
    }

    /// Gives up the turn early and accounts the time so far.
    fn release_turn(&self) {
        let had_turn = !self.is_without_turn.swap(true, Ordering::Relaxed);
        let (level, lasted) = self.account_turn();
        self.begin_turn();
        if had_turn {
            self.turns.end_turn(self, level, lasted);
        }
    }

    /// Accounts the time since the start of the turn, to the level at its start.
    fn account_turn(&self) -> (u8, Duration) {
        let (level, lasted) = (self.query.level(), self.turn_time());
        self.query.add_thread_time(lasted);
        (level, lasted)
    }

    /// Ends a turn and queues the task again if it was woken.
    fn end_turn(self: &Arc<Self>, is_done: bool) {
        let (level, lasted) = self.account_turn();
        let has_turn = !self.is_without_turn.swap(false, Ordering::Relaxed);
        if is_done {
            self.state.store(ENDED, Ordering::Release);
        } else if !self.transition(RUNNING, IDLE) {
            self.state.store(WAITING, Ordering::Release);
            match has_turn {
                true => self.turns.end_and_queue(Arc::clone(self), level, lasted),
                false => self.turns.queue(Arc::clone(self)),
            }
            return;
        }
        if has_turn {
            self.turns.end_turn(self, level, lasted);
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        loop {
            match self.state.load(Ordering::Acquire) {
                IDLE if self.transition(IDLE, WAITING) => return self.turns.queue(Arc::clone(self)),
                RUNNING if self.transition(RUNNING, WOKEN) => return,
                IDLE | RUNNING => {}
                // Already queued or woken, or gone.
                _ => return,
            }
        }
    }
}

/// Future that is polled only while its task has a turn.
pub(super) struct TurnFuture<F> {
    task: Arc<Task>,
    waker: Waker,
    future: Pin<Box<F>>,
    has_begun: bool,
}

impl<F: Future> Future for TurnFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        {
            let mut runtime = this.task.runtime.lock();
            if !runtime.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                *runtime = Some(context.waker().clone());
            }
        }
        if !std::mem::replace(&mut this.has_begun, true) {
            this.task.wake_by_ref();
        }
        if !this.task.transition(GRANTED, RUNNING) {
            return Poll::Pending;
        }
        this.task.begin_turn();
        this.task.report_to_watchdog();
        let polled = {
            let _leaving = WatchdogGuard;
            let mut inner = Context::from_waker(&this.waker);
            CURRENT.sync_scope(Arc::clone(&this.task), || this.future.as_mut().poll(&mut inner))
        };
        this.task.end_turn(polled.is_ready());
        polled
    }
}

/// Tells the watchdog on drop, also after a panic, that the thread is free.
struct WatchdogGuard;

impl Drop for WatchdogGuard {
    fn drop(&mut self) {
        stuck_threads::end_task();
    }
}

impl<F> Drop for TurnFuture<F> {
    fn drop(&mut self) {
        let state = self.task.state.swap(ENDED, Ordering::AcqRel);
        // Dropped before using its turn, or its future panicked.
        if matches!(state, GRANTED | RUNNING | WOKEN) && !self.task.is_without_turn.load(Ordering::Relaxed) {
            self.task.turns.end_turn(&self.task, self.task.query.level(), Duration::ZERO);
        }
    }
}
