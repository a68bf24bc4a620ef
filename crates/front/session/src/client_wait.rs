//! How long a session's statements have waited for its client to take rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Clock;

/// Counted by the one task of the session, and read by all.
#[derive(Debug)]
pub struct ClientWait {
    clock: Arc<dyn Clock>,
    waited_ns: AtomicU64,
    /// When the present wait began; 0 where there is none.
    since_ns: AtomicU64,
}

/// A wait, to be dropped at its end.
#[derive(Debug)]
pub struct Wait(Arc<ClientWait>);

impl ClientWait {
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, waited_ns: AtomicU64::new(0), since_ns: AtomicU64::new(0) })
    }

    pub fn begin(self: &Arc<Self>) -> Wait {
        self.since_ns.store(self.now_ns().max(1), Ordering::Relaxed);
        Wait(Arc::clone(self))
    }

    /// All waits together, with what has passed of the present one.
    pub fn so_far(&self) -> Duration {
        let since = self.since_ns.load(Ordering::Relaxed);
        let present = if since == 0 { 0 } else { self.now_ns().saturating_sub(since) };
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed) + present)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let since = self.0.since_ns.swap(0, Ordering::Relaxed);
        self.0.waited_ns.fetch_add(self.0.now_ns().saturating_sub(since), Ordering::Relaxed);
    }
}
