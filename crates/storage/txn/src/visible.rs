//! What the newest commit is, and which older ones are still looked at.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::CatalogState;
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::{CommitTs, Mutation};

/// The catalog as of one commit. As long as a clone of it lives, no object that its state names is deleted.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub ts: CommitTs,
    /// For a transaction's view, with its own changes.
    pub state: Arc<CatalogState>,
    pin: Arc<Pin>,
}

impl Snapshot {
    /// The same snapshot with a transaction's own changes.
    pub(crate) fn with_state(&self, state: Arc<CatalogState>) -> Self {
        Self { ts: self.ts, state, pin: Arc::clone(&self.pin) }
    }
}

/// The newest commit and the registered snapshots, under one lock: a snapshot is never taken of a commit that the horizon
/// has passed.
#[derive(Debug)]
pub(crate) struct Visible {
    state: Mutex<State>,
    /// `ts` of the state, to be asked for without its lock.
    newest: AtomicU64,
    /// Wakes who waits for the next commit.
    published: Notify,
}

#[derive(Debug)]
struct State {
    ts: CommitTs,
    catalog: Arc<CatalogState>,
    /// How many pins each commit has.
    pins: BTreeMap<CommitTs, usize>,
    /// The objects that older commits name may be gone.
    floor: CommitTs,
}

/// Keeps a commit registered.
#[derive(Debug)]
struct Pin {
    ts: CommitTs,
    visible: Arc<Visible>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.visible.state.lock();
        if let Some(count) = state.pins.get_mut(&self.ts) {
            *count -= 1;
            if *count == 0 {
                state.pins.remove(&self.ts);
            }
        }
    }
}

impl Visible {
    pub(crate) fn new(ts: CommitTs, catalog: Arc<CatalogState>, floor: CommitTs) -> Arc<Self> {
        let state = Mutex::new(State { ts, catalog, pins: BTreeMap::new(), floor });
        Arc::new(Self { state, newest: AtomicU64::new(ts.0), published: Notify::new() })
    }

    /// The newest commit. Whoever was told of a commit finds it, or a later one.
    pub(crate) fn newest(&self) -> CommitTs {
        CommitTs(self.newest.load(Ordering::Acquire))
    }

    /// Completes once there is a newer commit than this.
    pub(crate) async fn newer_than(&self, ts: CommitTs) {
        loop {
            let mut published = pin!(self.published.notified());
            // From here on none is missed.
            published.as_mut().enable();
            if ts < self.newest() {
                return;
            }
            published.await;
        }
    }

    /// The newest commit, registered.
    pub(crate) fn current(self: &Arc<Self>) -> Snapshot {
        let mut state = self.state.lock();
        let ts = state.ts;
        *state.pins.entry(ts).or_default() += 1;
        let pin = Arc::new(Pin { ts, visible: Arc::clone(self) });
        Snapshot { ts, state: Arc::clone(&state.catalog), pin }
    }

    /// An older commit, registered; `None` where objects that it names may be gone.
    pub(crate) fn past(self: &Arc<Self>, ts: CommitTs, catalog: Arc<CatalogState>) -> Option<Snapshot> {
        let mut state = self.state.lock();
        if ts < state.floor {
            return None;
        }
        *state.pins.entry(ts).or_default() += 1;
        let pin = Arc::new(Pin { ts, visible: Arc::clone(self) });
        Some(Snapshot { ts, state: catalog, pin })
    }

    /// Lets nobody look at a commit before `ts` any more, or before the oldest that somebody looks at; which of them.
    pub(crate) fn raise_floor(&self, ts: CommitTs) -> CommitTs {
        let mut state = self.state.lock();
        let oldest = state.pins.keys().next().copied().unwrap_or(state.ts);
        state.floor = state.floor.max(ts.min(oldest));
        ts.min(oldest)
    }

    /// Makes a durable commit the newest.
    pub(crate) fn publish(&self, ts: CommitTs, catalog: Arc<CatalogState>) {
        let mut state = self.state.lock();
        assert!(state.ts < ts, "commits become visible in their order");
        state.ts = ts;
        state.catalog = catalog;
        self.newest.store(ts.0, Ordering::Release);
        drop(state);
        self.published.notify_waiters();
    }

    /// The oldest commit that anyone looks at or can come to look at.
    pub(crate) fn horizon(&self) -> CommitTs {
        let state = self.state.lock();
        if Mutation::CleaningIgnoresSnapshots.is_on() {
            return state.ts;
        }
        state.pins.keys().next().copied().unwrap_or(state.ts)
    }
}
