//! Query threads and how long each has been in one task without giving the thread back: what a watchdog asks.
//!
//! Tasks pause about every millisecond. One that has not done so for seconds waits where nothing may wait, or computes what cannot pause;
//! either way its thread serves nobody else.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use types::{Clock, QueryId};

/// A thread that has been in one task for long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingThread {
    /// The thread's name.
    pub thread: String,
    /// The task's query; none for work in the background.
    pub query: Option<QueryId>,
    pub lasted: Duration,
}

/// A thread's task: written by the thread, read by the watchdog.
#[derive(Debug)]
struct Slot {
    thread: String,
    clock: Arc<dyn Clock>,
    /// When the task got the thread, in nanoseconds of the clock and one more; 0 without a task.
    since: AtomicU64,
    query: AtomicU64,
}

/// The slots of all threads of the process that have had a task.
static SLOTS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: RefCell<Option<Arc<Slot>>> = const { RefCell::new(None) };
}

/// The threads that have been in one task for `limit` or longer, the longest first.
#[must_use]
pub fn standing_threads(limit: Duration) -> Vec<StandingThread> {
    let slots: Vec<Arc<Slot>> = {
        let mut slots = SLOTS.lock();
        slots.retain(|slot| slot.strong_count() != 0);
        slots.iter().filter_map(Weak::upgrade).collect()
    };
    let mut standing: Vec<StandingThread> = slots.iter().filter_map(|slot| slot.standing(limit)).collect();
    standing.sort_by_key(|thread| std::cmp::Reverse(thread.lasted));
    standing
}

impl Slot {
    fn standing(&self, limit: Duration) -> Option<StandingThread> {
        let since = self.since.load(Ordering::Acquire).checked_sub(1)?;
        let query = self.query.load(Ordering::Relaxed);
        let lasted = self.clock.monotonic().saturating_sub(Duration::from_nanos(since));
        let query = (query != 0).then_some(QueryId(query));
        (limit <= lasted).then(|| StandingThread { thread: self.thread.clone(), query, lasted })
    }
}

/// The calling thread has a task of `query` from now on; `now` is of `clock`.
pub(super) fn enter(query: Option<QueryId>, now: Duration, clock: &Arc<dyn Clock>) {
    OWN.with_borrow_mut(|own| {
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

/// The calling thread has no task any more, or one that may take its time.
pub(super) fn leave() {
    OWN.with_borrow(|own| {
        if let Some(slot) = own {
            slot.since.store(0, Ordering::Release);
        }
    });
}
