//! Time that a session's statements have waited for the client to take rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Clock;

/// Total wait time of a session, counted by its one task and read by all.
#[derive(Debug)]
pub struct ClientWait {
    clock: Arc<dyn Clock>,
    waited_ns: AtomicU64,
    /// Time at which the present wait began; 0 if there is none.
    wait_began_ns: AtomicU64,
}

/// Guard of a wait, which ends when it is dropped.
#[derive(Debug)]
pub struct ClientWaitGuard(Arc<ClientWait>);

impl ClientWait {
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, waited_ns: AtomicU64::new(0), wait_began_ns: AtomicU64::new(0) })
    }

    /// Begins a wait.
    pub fn begin(self: &Arc<Self>) -> ClientWaitGuard {
        self.wait_began_ns.store(self.now_ns().max(1), Ordering::Relaxed);
        ClientWaitGuard(Arc::clone(self))
    }

    /// Returns the total time of all waits, the present one included.
    pub fn total(&self) -> Duration {
        let since = self.wait_began_ns.load(Ordering::Relaxed);
        let present = if since == 0 { 0 } else { self.now_ns().saturating_sub(since) };
        Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed) + present)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Drop for ClientWaitGuard {
    fn drop(&mut self) {
        let since = self.0.wait_began_ns.swap(0, Ordering::Relaxed);
        self.0.waited_ns.fetch_add(self.0.now_ns().saturating_sub(since), Ordering::Relaxed);
    }
}
