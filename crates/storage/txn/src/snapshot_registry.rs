//! The newest committed state, and the pins that snapshots hold on it and on older commits.
//!
//! The *horizon* is the oldest pinned commit: objects that only older commits reference may be deleted.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog::CatalogState;
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::{CommitTs, InjectedBug};

/// Snapshot: the catalog as of one commit. While it or a clone of it lives, no object that its state references is
/// deleted.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub ts: CommitTs,
    /// The catalog; in a transaction's view it includes the transaction's own changes.
    pub state: Arc<CatalogState>,
    pin: Arc<Pin>,
}

impl Snapshot {
    /// Returns the same snapshot with a state that includes the transaction's own changes.
    pub(crate) fn with_state(&self, state: Arc<CatalogState>) -> Self {
        Self { ts: self.ts, state, pin: Arc::clone(&self.pin) }
    }
}

/// The newest commit and the pinned commits. One lock covers both, so that no snapshot can be taken of a commit that
/// the horizon has passed.
#[derive(Debug)]
pub(crate) struct SnapshotRegistry {
    state: Mutex<RegistryState>,
    /// `ts` of the state, readable without the lock.
    newest_ts: AtomicU64,
    /// Notified at each commit.
    published: Notify,
}

#[derive(Debug)]
struct RegistryState {
    ts: CommitTs,
    catalog: Arc<CatalogState>,
    /// Number of pins per commit.
    pin_counts: BTreeMap<CommitTs, usize>,
    /// The oldest commit whose objects are all guaranteed to exist.
    snapshot_floor: CommitTs,
}

/// Pin of a commit, released on drop.
#[derive(Debug)]
struct Pin {
    ts: CommitTs,
    registry: Arc<SnapshotRegistry>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.registry.state.lock();
        if let Some(count) = state.pin_counts.get_mut(&self.ts) {
            *count -= 1;
            if *count == 0 {
                state.pin_counts.remove(&self.ts);
            }
        }
    }
}

impl SnapshotRegistry {
    pub(crate) fn new(ts: CommitTs, catalog: Arc<CatalogState>, snapshot_floor: CommitTs) -> Arc<Self> {
        let state = Mutex::new(RegistryState { ts, catalog, pin_counts: BTreeMap::new(), snapshot_floor });
        Arc::new(Self { state, newest_ts: AtomicU64::new(ts.0), published: Notify::new() })
    }

    /// Returns the newest commit. A client whose commit has been acknowledged sees that commit or a later one.
    pub(crate) fn newest(&self) -> CommitTs {
        CommitTs(self.newest_ts.load(Ordering::Acquire))
    }

    /// Waits until there is a newer commit than `ts`.
    pub(crate) async fn wait_for_newer(&self, ts: CommitTs) {
        loop {
            let mut published = pin!(self.published.notified());
            // From here on no notification is missed.
            published.as_mut().enable();
            if ts < self.newest() {
                return;
            }
            published.await;
        }
    }

    /// Pins the newest commit and returns its snapshot.
    pub(crate) fn pin_newest(self: &Arc<Self>) -> Snapshot {
        let mut state = self.state.lock();
        let ts = state.ts;
        *state.pin_counts.entry(ts).or_default() += 1;
        let pin = Arc::new(Pin { ts, registry: Arc::clone(self) });
        Snapshot { ts, state: Arc::clone(&state.catalog), pin }
    }

    /// Pins an older commit and returns its snapshot; `None` if objects that it references may have been deleted.
    pub(crate) fn pin_older(self: &Arc<Self>, ts: CommitTs, catalog: Arc<CatalogState>) -> Option<Snapshot> {
        let mut state = self.state.lock();
        if ts < state.snapshot_floor {
            return None;
        }
        *state.pin_counts.entry(ts).or_default() += 1;
        let pin = Arc::new(Pin { ts, registry: Arc::clone(self) });
        Some(Snapshot { ts, state: catalog, pin })
    }

    /// Forbids new snapshots of commits before `ts`, or before the oldest pinned commit if that is older; returns the
    /// earlier of the two.
    pub(crate) fn raise_snapshot_floor(&self, ts: CommitTs) -> CommitTs {
        let mut state = self.state.lock();
        let oldest = state.pin_counts.keys().next().copied().unwrap_or(state.ts);
        state.snapshot_floor = state.snapshot_floor.max(ts.min(oldest));
        ts.min(oldest)
    }

    /// Makes a durable commit the newest visible one.
    pub(crate) fn publish(&self, ts: CommitTs, catalog: Arc<CatalogState>) {
        let mut state = self.state.lock();
        assert!(state.ts < ts, "invariant of publish: commits become visible in commit order");
        state.ts = ts;
        state.catalog = catalog;
        self.newest_ts.store(ts.0, Ordering::Release);
        drop(state);
        self.published.notify_waiters();
    }

    /// Returns the horizon: the oldest commit that is pinned or can still be pinned.
    pub(crate) fn horizon(&self) -> CommitTs {
        let state = self.state.lock();
        if InjectedBug::CleaningIgnoresSnapshots.is_active() {
            return state.ts;
        }
        state.pin_counts.keys().next().copied().unwrap_or(state.ts)
    }
}
