//! A task that runs in turns: it is polled only while it has one.

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
use types::allocated::check_room;
use types::interrupt::{self, canceled};
use types::{Clock, SqlResult, SystemClock};

use super::background::in_background;
use super::turns::Turns;
use super::{QueryShare, standing};

/// After so long whoever can pause lets others go on. Among queries that are all older a turn is longer, twice as long with each level:
/// what a query works on has to come to the core's caches again after each.
const TURN: Duration = Duration::from_millis(1);

/// A step in which a task cannot pause gives its turn and its thread away after this. Nearly all steps are far shorter, so that few threads are made.
const LONG_STEP: Duration = Duration::from_millis(20);

tokio::task_local! {
    /// The task that runs.
    static CURRENT: Arc<Task>;
}

/// Nothing to do until something wakes it.
const IDLE: u8 = 0;
/// In the queue for a turn.
const WAITING: u8 = 1;
/// It has its turn, and has not begun.
const CALLED: u8 = 2;
const RUNNING: u8 = 3;
/// Woken while it runs: it goes on as soon as it has another turn.
const WOKEN: u8 = 4;
const GONE: u8 = 5;

/// What is known of a task to those that wake it and give it turns.
pub(super) struct Task {
    turns: Arc<Turns>,
    pub(super) query: Arc<QueryShare>,
    /// Fires when nobody waits for the task any more.
    stop: CancellationToken,
    state: AtomicU8,
    /// Wakes the future around it, which the runtime polls.
    runtime: Mutex<Option<Waker>>,
    /// When its turn began, in nanoseconds of the clock.
    begun_ns: AtomicU64,
    /// It runs without a turn until its next pause.
    is_outside: AtomicBool,
    /// Its query was young when it got its turn.
    was_young: AtomicBool,
}

/// `future` as part of a query, in turns.
pub(super) fn in_turns<F: Future>(
    turns: &Arc<Turns>,
    query: &Arc<QueryShare>,
    stop: &CancellationToken,
    future: F,
) -> InTurns<F> {
    let task = Arc::new(Task {
        turns: Arc::clone(turns),
        query: Arc::clone(query),
        stop: stop.clone(),
        state: AtomicU8::new(IDLE),
        runtime: Mutex::default(),
        begun_ns: AtomicU64::new(0),
        is_outside: AtomicBool::new(false),
        was_young: AtomicBool::new(false),
    });
    InTurns { waker: Waker::from(Arc::clone(&task)), task, future: Box::pin(future), has_begun: false }
}

/// `future` as another task of the query that runs here; as it is where none does.
pub fn beside<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
    match CURRENT.try_with(Arc::clone) {
        Ok(task) => Either::Left(in_turns(&task.turns, &task.query, &task.stop, future)),
        Err(_) => Either::Right(future),
    }
}

/// The clock of the threads that the task runs on; the machine's where it takes no turns.
pub fn clock() -> Arc<dyn Clock> {
    static MACHINE: LazyLock<Arc<dyn Clock>> = LazyLock::new(|| Arc::new(SystemClock::new()));
    CURRENT.try_with(|task| Arc::clone(task.turns.clock())).unwrap_or_else(|_| Arc::clone(&MACHINE))
}

/// Lets others go on where the turn has lasted long enough. For whoever computes batch after batch.
pub async fn pause() {
    let is_over = CURRENT.try_with(|task| task.has_had_its_turn());
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

/// Waits for other tasks with the thread's own means; these get the turn, and another thread. Only where the runtime has several.
pub fn outside<T>(wait: impl FnOnce() -> T) -> T {
    let Ok(task) = CURRENT.try_with(Arc::clone) else { return tokio::task::block_in_place(wait) };
    task.leave();
    standing::leave();
    let outcome = tokio::task::block_in_place(wait);
    task.begin();
    task.stands();
    outcome
}

/// Computes what takes long and cannot pause: others get the turn meanwhile, and another thread. What old queries compute so stays behind
/// those that have turns.
pub fn at_length<T: Send>(compute: impl FnOnce() -> T + Send) -> T {
    let Ok(task) = CURRENT.try_with(Arc::clone) else { return compute() };
    task.leave();
    standing::leave();
    let is_old = !task.query.is_young();
    let outcome = tokio::task::block_in_place(|| if is_old { in_background(compute) } else { compute() });
    task.stands();
    outcome
}

/// Runs a part of a step that cannot pause. Where the step is long, others have the turn and another thread from then on: it goes on without a turn
/// until it can pause, and the system shares the cores among such threads and those that have turns.
pub(super) fn give_way(part: &mut dyn FnMut()) {
    let is_outside = CURRENT.try_with(|task| {
        if LONG_STEP <= task.lasted() {
            task.leave();
        }
        let is_outside = task.is_outside.load(Ordering::Relaxed);
        if is_outside {
            // The watchdog is to name who hangs in one part, not who gets through many.
            task.stands();
        }
        is_outside
    });
    // Around each part: the runtime gives the thread's queue to another thread for so long alone, and takes it back where none has come by then.
    if is_outside.unwrap_or(false) { tokio::task::block_in_place(part) } else { part() }
}

/// Whether the statement that the thread works for may go on, and hold so many bytes more: for whoever makes large values.
pub(super) fn may_make(bytes: usize) -> SqlResult<()> {
    if CURRENT.try_with(|task| task.stop.is_cancelled()).unwrap_or(false) {
        return Err(canceled());
    }
    interrupt::check()?;
    if bytes == 0 { Ok(()) } else { check_room(bytes) }
}

/// Waits until so few compute at length that another one may, to be held meanwhile: all of them would be beside those that have turns. A
/// young query does not wait for old ones.
pub async fn place() -> Option<OwnedSemaphorePermit> {
    let task = CURRENT.try_with(Arc::clone).ok()?;
    if task.query.is_young() {
        return None;
    }
    Some(task.turns.place().await)
}

impl Task {
    /// Whether it is there to take the turn that it has waited for.
    pub(super) fn take_turn(&self, is_young: bool) -> bool {
        // It may run as soon as it is called.
        self.was_young.store(is_young, Ordering::Relaxed);
        self.becomes(WAITING, CALLED)
    }

    pub(super) fn was_young(&self) -> bool {
        self.was_young.load(Ordering::Relaxed)
    }

    /// Tells the runtime that it can go on.
    pub(super) fn call(&self) {
        let runtime = self.runtime.lock().clone();
        if let Some(runtime) = runtime {
            runtime.wake();
        }
    }

    fn becomes(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Tells the watchdog that the task has the calling thread from now on.
    fn stands(&self) {
        standing::enter(self.query.query(), self.turns.now(), self.turns.clock());
    }

    fn begin(&self) {
        let now = u64::try_from(self.turns.now().as_nanos()).unwrap_or(u64::MAX);
        self.begun_ns.store(now, Ordering::Relaxed);
    }

    fn lasted(&self) -> Duration {
        self.turns.now().saturating_sub(Duration::from_nanos(self.begun_ns.load(Ordering::Relaxed)))
    }

    fn has_had_its_turn(&self) -> bool {
        if self.is_outside.load(Ordering::Relaxed) {
            return true;
        }
        let (lasted, level) = (self.lasted(), self.query.level());
        if !self.was_young() && self.turns.is_crowded() {
            return true;
        }
        TURN <= lasted && (!self.turns.are_old(level) || TURN * (1 << level) <= lasted)
    }

    /// Gives the turn away before its end, and counts the time so far.
    fn leave(&self) {
        let had_turn = !self.is_outside.swap(true, Ordering::Relaxed);
        let (level, lasted) = self.use_up();
        self.begin();
        if had_turn {
            self.turns.end(self, level, lasted);
        }
    }

    /// Counts the time since it began, of the level that it began in.
    fn use_up(&self) -> (u8, Duration) {
        let (level, lasted) = (self.query.level(), self.lasted());
        self.query.use_up(lasted);
        (level, lasted)
    }

    /// Ends a turn.
    fn end(self: &Arc<Self>, is_done: bool) {
        let (level, lasted) = self.use_up();
        let has_turn = !self.is_outside.swap(false, Ordering::Relaxed);
        if is_done {
            self.state.store(GONE, Ordering::Release);
        } else if !self.becomes(RUNNING, IDLE) {
            self.state.store(WAITING, Ordering::Release);
            match has_turn {
                true => self.turns.end_and_queue(Arc::clone(self), level, lasted),
                false => self.turns.queue(Arc::clone(self)),
            }
            return;
        }
        if has_turn {
            self.turns.end(self, level, lasted);
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
                IDLE if self.becomes(IDLE, WAITING) => return self.turns.queue(Arc::clone(self)),
                RUNNING if self.becomes(RUNNING, WOKEN) => return,
                IDLE | RUNNING => {}
                // Its turn comes, or never again.
                _ => return,
            }
        }
    }
}

/// A future that is polled only in its turns.
pub(super) struct InTurns<F> {
    task: Arc<Task>,
    waker: Waker,
    future: Pin<Box<F>>,
    has_begun: bool,
}

impl<F: Future> Future for InTurns<F> {
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
        if !this.task.becomes(CALLED, RUNNING) {
            return Poll::Pending;
        }
        this.task.begin();
        this.task.stands();
        let polled = {
            let _leaving = Leaving;
            let mut inner = Context::from_waker(&this.waker);
            CURRENT.sync_scope(Arc::clone(&this.task), || this.future.as_mut().poll(&mut inner))
        };
        this.task.end(polled.is_ready());
        polled
    }
}

/// Tells the watchdog that the thread is free, also where the task panics.
struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        standing::leave();
    }
}

impl<F> Drop for InTurns<F> {
    fn drop(&mut self) {
        let state = self.task.state.swap(GONE, Ordering::AcqRel);
        // Dropped before it took its turn, or its future panicked.
        if matches!(state, CALLED | RUNNING | WOKEN) && !self.task.is_outside.load(Ordering::Relaxed) {
            self.task.turns.end(&self.task, self.task.query.level(), Duration::ZERO);
        }
    }
}
