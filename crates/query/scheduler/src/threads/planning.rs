//! Threads for work on statements before they run: parsing, binding, constant folding, optimizing, estimating.
//!
//! They are separate from the threads that serve connections and those that run operators, so that one statement's text
//! never delays other statements. As many jobs run at once as there are cores, each in a slot. A long job gives up its
//! slot and continues on its thread at low priority; so does an abandoned job, until it notices the interrupt.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use types::interrupt::{Interrupt, run_interruptible};
use types::planning_memory::PlanningMemory;
use types::stack_limit::PLAN_STACK_BYTES;
use types::{Clock, Condition, SqlError, SqlResult};

use super::background::{ThreadId, current_thread, lower_priority_of};

/// Time after which a job gives up its slot. Nearly all statements are planned in a few milliseconds; even after two
/// long jobs in a row a short statement starts within the 50 ms that it may wait.
const SLOT_TIME_MAX: Duration = Duration::from_millis(20);

/// Maximum number of jobs that continue without a slot, each with a stack and its intermediate results. Beyond it, jobs
/// keep their slots, and new ones wait until one ends or is cancelled.
const WITHOUT_SLOT_MAX: usize = 64;

/// Planning threads of one server.
pub struct PlanningThreads(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    /// Number of slots.
    slots: usize,
    memory: Arc<PlanningMemory>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    /// Condition variables of the idle threads. The thread that became idle last is woken first, because its data is
    /// still in CPU caches.
    idle: Vec<Arc<Condvar>>,
    /// Threads that were woken or started but have not taken a job yet.
    starting: usize,
    /// Jobs in slots, and long jobs without one.
    in_slots: usize,
    /// Long jobs that continue without a slot.
    without_slot: usize,
    is_closed: bool,
}

struct Job {
    ticket: Arc<JobState>,
    work: Box<dyn FnOnce() + Send>,
}

/// State of a job, shared with its submitter. `phase` changes only while the state is locked.
struct JobState {
    phase: AtomicU8,
    thread: OnceLock<ThreadId>,
    interrupt: Interrupt,
}

const QUEUED: u8 = 0;
const IN_SLOT: u8 = 1;
const WITHOUT_SLOT: u8 = 2;
const DONE: u8 = 3;

impl PlanningThreads {
    /// Returns a pool of `count` slots. Threads are started on demand; all jobs together may use `memory_bytes`.
    #[must_use]
    pub fn new(count: usize, memory_bytes: usize, clock: &Arc<dyn Clock>) -> Self {
        let memory = Arc::new(PlanningMemory::new(memory_bytes));
        Self(Arc::new(Shared { state: Mutex::default(), clock: Arc::clone(clock), slots: count.max(1), memory }))
    }

    /// Runs `work` on a planning thread. If the future is dropped, work that has not begun never does, and running work
    /// is interrupted and gives up its slot.
    ///
    /// # Errors
    /// The errors of `work`; `XX000` if it panics; `53200` if there is no memory for it or no thread can be started.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> SqlResult<T> + Send + 'static) -> SqlResult<T> {
        let (sender, mut done) = oneshot::channel();
        let interrupt: Interrupt = Arc::new(AtomicBool::new(false));
        let ticket = Arc::new(JobState {
            phase: AtomicU8::new(QUEUED),
            thread: OnceLock::new(),
            interrupt: Arc::clone(&interrupt),
        });
        let span = tracing::Span::current();
        let memory = Arc::clone(&self.0.memory);
        let work = move || {
            if sender.is_closed() {
                return;
            }
            let within = || span.in_scope(|| run_interruptible(interrupt, &memory, work));
            let outcome = catch_unwind(AssertUnwindSafe(within)).unwrap_or_else(|panic| Err(panic_error(&*panic)));
            // The submitter may be gone.
            let _ = sender.send(outcome);
        };
        self.0.submit(Job { ticket: Arc::clone(&ticket), work: Box::new(work) })?;
        let mut waiting = JobWaiter { shared: &self.0, ticket, is_answered: false };
        loop {
            tokio::select! {
                biased;
                outcome = &mut done => {
                    waiting.is_answered = true;
                    let lost = || SqlError::internal("a planning thread ended without an outcome");
                    return outcome.unwrap_or_else(|_| Err(lost()));
                }
                () = self.0.clock.sleep(SLOT_TIME_MAX) => waiting.shared.release_slot(&waiting.ticket),
            }
        }
    }

    /// Returns the number of long jobs without a slot.
    #[must_use]
    pub fn long_jobs(&self) -> usize {
        self.0.state.lock().without_slot
    }
}

impl Drop for PlanningThreads {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        for idle in &state.idle {
            idle.notify_one();
        }
    }
}

impl fmt::Debug for PlanningThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanningThreads").field("count", &self.0.slots).finish_non_exhaustive()
    }
}

/// Submitter of a job; interrupts the job when dropped before the answer.
struct JobWaiter<'a> {
    shared: &'a Arc<Shared>,
    ticket: Arc<JobState>,
    is_answered: bool,
}

impl Drop for JobWaiter<'_> {
    fn drop(&mut self) {
        // A thread sends its answer before it marks the job as done. Without this check nearly every job would give up
        // its slot and end its thread.
        if self.is_answered {
            return;
        }
        self.ticket.interrupt.store(true, Ordering::Relaxed);
        if self.ticket.phase.load(Ordering::Acquire) == IN_SLOT {
            self.shared.release_slot(&self.ticket);
        }
    }
}

impl Shared {
    /// Queues a job and makes sure that a thread takes it.
    fn submit(self: &Arc<Self>, job: Job) -> SqlResult<()> {
        let mut state = self.state.lock();
        state.queue.push_back(job);
        self.ensure_thread(&mut state).map_err(|error| {
            state.queue.pop_back();
            SqlError::new(Condition::OutOfMemory, format!("could not start a planning thread: {error}"))
        })
    }

    /// Wakes or starts one thread for the queued jobs, if there is a free slot.
    fn ensure_thread(self: &Arc<Self>, state: &mut State) -> std::io::Result<()> {
        if state.queue.len() <= state.starting || self.slots <= state.in_slots + state.starting {
            return Ok(());
        }
        if let Some(idle) = state.idle.pop() {
            state.starting += 1;
            idle.notify_one();
            return Ok(());
        }
        let shared = Arc::clone(self);
        let thread = Builder::new().name("planning".to_owned()).stack_size(PLAN_STACK_BYTES);
        match thread.spawn(move || shared.run_jobs()) {
            Ok(_) => {
                state.starting += 1;
                Ok(())
            }
            // Existing threads take the job when they are done.
            Err(_) if state.in_slots + state.starting + state.without_slot != 0 => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Main loop of a thread.
    fn run_jobs(self: &Arc<Self>) {
        let (own, wake) = (current_thread(), Arc::new(Condvar::new()));
        let mut state = self.state.lock();
        state.starting -= 1;
        loop {
            if state.in_slots < self.slots
                && let Some(Job { ticket, work }) = state.queue.pop_front()
            {
                if let Some(own) = own {
                    let _ = ticket.thread.set(own);
                }
                state.in_slots += 1;
                ticket.phase.store(IN_SLOT, Ordering::Release);
                // Wakes another thread for further jobs. If none can be started, this one takes them.
                let _ = self.ensure_thread(&mut state);
                parking_lot::MutexGuard::unlocked(&mut state, work);
                match ticket.phase.swap(DONE, Ordering::AcqRel) {
                    WITHOUT_SLOT => {
                        state.without_slot -= 1;
                        // The priority of this thread was lowered for good, so another thread takes the queue, unless
                        // none can be started.
                        if self.ensure_thread(&mut state).is_ok() {
                            return;
                        }
                    }
                    _ => state.in_slots -= 1,
                }
            } else if state.is_closed || self.slots <= state.idle.len() {
                return;
            } else {
                state.idle.push(Arc::clone(&wake));
                wake.wait(&mut state);
                match state.idle.iter().position(|idle| Arc::ptr_eq(idle, &wake)) {
                    // The pool is closed, or the wake-up was spurious.
                    Some(place) => drop(state.idle.remove(place)),
                    None => state.starting -= 1,
                }
            }
        }
    }

    /// Moves a job out of its slot, unless too many long jobs are running.
    fn release_slot(self: &Arc<Self>, ticket: &JobState) {
        let mut state = self.state.lock();
        if ticket.phase.load(Ordering::Acquire) != IN_SLOT || WITHOUT_SLOT_MAX <= state.without_slot {
            return;
        }
        ticket.phase.store(WITHOUT_SLOT, Ordering::Release);
        state.in_slots -= 1;
        state.without_slot += 1;
        if let Some(thread) = ticket.thread.get() {
            lower_priority_of(*thread);
        }
        // If no thread can be started, the others take the queue.
        let _ = self.ensure_thread(&mut state);
    }
}

/// Returns the error of a panic while planning: `XX000`.
fn panic_error(panic: &(dyn Any + Send)) -> SqlError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given");
    SqlError::internal(format!("planning the statement panicked: {text}"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use types::interrupt;
    use types::{ManualClock, SystemClock};

    use super::*;

    fn threads(count: usize) -> PlanningThreads {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        PlanningThreads::new(count, 1 << 30, &clock)
    }

    #[test]
    fn an_answer_takes_no_place_away_from_a_thread_that_has_not_noted_it_yet() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let threads = Arc::new(PlanningThreads::new(1, 1 << 30, &clock));
        let (release, released) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel::<()>();
        let work = move || {
            begun.send(()).map_err(|_| SqlError::internal("begun"))?;
            released.recv().map_err(|_| SqlError::internal("released"))
        };
        let running = runtime.spawn({
            let threads = Arc::clone(&threads);
            async move { threads.run(work).await }
        });
        begins.recv().unwrap();
        let state = threads.0.state.lock();
        release.send(()).unwrap();
        let (clock, patience) = (SystemClock::new(), Duration::from_secs(60));
        while !running.is_finished() {
            assert!(clock.monotonic() < patience, "it waits for its thread to note that it is done");
            std::thread::yield_now();
        }
        drop(state);
        runtime.block_on(running).unwrap().unwrap();
        assert_eq!(threads.long_jobs(), 0);
    }

    #[tokio::test]
    async fn one_after_the_other_is_done_by_one_thread() {
        // By this clock no job takes long, so that every thread stays.
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let threads = PlanningThreads::new(4, 1 << 30, &clock);
        let id = || Ok(std::thread::current().id());
        // All four threads have started and are idle.
        let barrier = Arc::new(std::sync::Barrier::new(4));
        let all = (0..4).map(|_| {
            let barrier = Arc::clone(&barrier);
            threads.run(move || {
                barrier.wait();
                Ok(())
            })
        });
        futures::future::try_join_all(all).await.unwrap();
        let (clock, patience) = (SystemClock::new(), Duration::from_secs(60));
        let idle = || threads.0.state.lock().idle.len();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..20 {
            while idle() < 4 {
                assert!(clock.monotonic() < patience, "{} of 4 threads are idle", idle());
                std::thread::yield_now();
            }
            seen.insert(threads.run(id).await.unwrap());
        }
        assert_eq!(seen.len(), 1, "whoever was idle last is the first to be woken");
    }

    #[tokio::test]
    async fn what_takes_long_holds_nobody() {
        let threads = Arc::new(threads(1));
        let mut held = Vec::new();
        for _ in 0..10 {
            let (release, released) = mpsc::channel::<()>();
            let threads = Arc::clone(&threads);
            let work = move || released.recv().map_err(|_| SqlError::internal("released"));
            held.push((release, tokio::spawn(async move { threads.run(work).await })));
        }
        for number in 0..20 {
            assert_eq!(threads.run(move || Ok(number)).await.unwrap(), number);
        }
        for (release, running) in held {
            release.send(()).unwrap();
            running.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn who_stops_waiting_interrupts_the_work() {
        let threads = threads(1);
        let (begun, has_begun) = oneshot::channel();
        let (ended, has_ended) = oneshot::channel();
        let work = move || {
            begun.send(()).expect("the test waits");
            while interrupt::check().is_ok() {
                std::thread::yield_now();
            }
            ended.send(()).expect("the test waits");
            Ok(())
        };
        {
            let running = threads.run(work);
            tokio::select! {
                _ = running => panic!("it runs until it is interrupted"),
                begun = has_begun => begun.expect("it begins"),
            }
        }
        has_ended.await.expect("it heeds the interrupt");
        assert_eq!(threads.run(|| Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_statement() {
        let threads = threads(1);
        let error = threads.run::<()>(|| panic!("of a test")).await.unwrap_err();
        assert!(error.condition == Condition::InternalError && error.message.ends_with("of a test"), "{error:?}");
        assert_eq!(threads.run(|| Ok(7)).await.unwrap(), 7);
    }
}
