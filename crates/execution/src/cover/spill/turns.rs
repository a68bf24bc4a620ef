//! Who has no room for a part waits for those who have one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::execution::memory_pool::MemoryReservation;
use tokio::sync::Notify;

/// The workers that have parts in memory.
#[derive(Default)]
pub(super) struct Turns {
    holding: AtomicUsize,
    freed: Notify,
}

/// A part in memory; who waits is told when it is gone.
pub(super) struct Turn {
    turns: Arc<Turns>,
    held: Option<MemoryReservation>,
}

impl Turns {
    /// Lets `held` be so much. Waits for others where that is too much; `false` where there are none.
    pub(super) async fn has_room(&self, held: &MemoryReservation, bytes: usize) -> bool {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if bytes <= held.size() || held.try_resize(bytes).is_ok() {
                return true;
            }
            if self.holding.load(Ordering::SeqCst) == 0 {
                return false;
            }
            freed.await;
        }
    }

    /// Begins to go through a part that takes so much.
    pub(super) fn begin(self: &Arc<Self>, held: MemoryReservation) -> Turn {
        self.holding.fetch_add(1, Ordering::SeqCst);
        Turn { turns: Arc::clone(self), held: Some(held) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.held = None;
        self.turns.holding.fetch_sub(1, Ordering::SeqCst);
        self.turns.freed.notify_waiters();
    }
}
