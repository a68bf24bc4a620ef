//! Query threads that are stuck in one task without yielding, for a watchdog.
//!
//! Tasks yield about every millisecond. One that has not done so for seconds blocks where it must not, or computes
//! something that cannot yield; either way its thread serves no other task.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use types::{Clock, QueryId};

/// Thread that has been in one task for long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckThread {
    /// Name of the thread.
    pub thread: String,
    /// Query of the task; `None` for background work.
    pub query: Option<QueryId>,
    /// Time since the task got the thread.
    pub lasted: Duration,
}

/// Current task of a thread: written by the thread, read by the watchdog.
#[derive(Debug)]
struct Slot {
    thread: String,
    clock: Arc<dyn Clock>,
    /// Start of the task in nanoseconds of the clock, plus one; 0 without a task.
    since: AtomicU64,
    query: AtomicU64,
}

/// Slots of all threads of the process that have run a task.
static SLOTS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

thread_local! {
    static CURRENT_SLOT: RefCell<Option<Arc<Slot>>> = const { RefCell::new(None) };
}

/// Returns the threads that have been in one task for at least `limit`, the longest first.
#[must_use]
pub fn stuck_threads(limit: Duration) -> Vec<StuckThread> {
    let slots: Vec<Arc<Slot>> = {
        let mut slots = SLOTS.lock();
        slots.retain(|slot| slot.strong_count() != 0);
        slots.iter().filter_map(Weak::upgrade).collect()
    };
    let mut standing: Vec<StuckThread> = slots.iter().filter_map(|slot| slot.stuck_thread(limit)).collect();
    standing.sort_by_key(|thread| std::cmp::Reverse(thread.lasted));
    standing
}

impl Slot {
    fn stuck_thread(&self, limit: Duration) -> Option<StuckThread> {
        let since = self.since.load(Ordering::Acquire).checked_sub(1)?;
        let query = self.query.load(Ordering::Relaxed);
        let lasted = self.clock.monotonic().saturating_sub(Duration::from_nanos(since));
        let query = (query != 0).then_some(QueryId(query));
        (limit <= lasted).then(|| StuckThread { thread: self.thread.clone(), query, lasted })
    }
}

/// Records that the calling thread begins a task of `query`; `now` is a time of `clock`.
pub(super) fn begin_task(query: Option<QueryId>, now: Duration, clock: &Arc<dyn Clock>) {
    CURRENT_SLOT.with_borrow_mut(|own| {
        let slot = own.get_or_insert_with(|| {
            let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
            let (since, query) = (AtomicU64::new(0), AtomicU64::new(0));
            let slot = Arc::new(Slot { thread, clock: Arc::clone(clock), since, query });
            SLOTS.lock().push(Arc::downgrade(&slot));
            slot
        });
        slot.query.store(query.map_or(0, |query| query.0), Ordering::Relaxed);
        let since = u64::try_from(now.as_nanos()).map_or(u64::MAX, |since| since.saturating_add(1));
        slot.since.store(since, Ordering::Release);
    });
}

/// Records that the calling thread has no task, or one that is allowed to take long.
pub(super) fn end_task() {
    CURRENT_SLOT.with_borrow(|own| {
        if let Some(slot) = own {
            slot.since.store(0, Ordering::Release);
        }
    });
}
