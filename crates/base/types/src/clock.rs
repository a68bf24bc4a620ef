//! Time behind a trait, so that storage and clusters can be simulated deterministically.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

/// Source of time: wall-clock time for timestamps, monotonic time for durations, and sleeping.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the wall-clock time in microseconds since 1970-01-01 UTC.
    fn now_us(&self) -> i64;
    /// Returns the time since an arbitrary start; it never decreases.
    fn monotonic(&self) -> Duration;
    /// Completes once `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates a clock whose monotonic time starts at zero.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn now_us(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_micros()).expect("microseconds fit 63 bits for 292,000 years")
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that sleeps")]
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Manually advanced clock for tests. Both of its times start at zero.
#[derive(Debug, Default)]
pub struct ManualClock {
    state: Arc<Mutex<ManualClockState>>,
}

#[derive(Debug, Default)]
struct ManualClockState {
    now: Duration,
    sleepers: Vec<Waker>,
}

impl ManualClock {
    /// Advances the time by `duration` and wakes the sleepers whose time has come.
    pub fn advance(&self, duration: Duration) {
        let mut state = self.state.lock();
        state.now += duration;
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        sleepers.into_iter().for_each(Waker::wake);
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> i64 {
        i64::try_from(self.monotonic().as_micros()).expect("microseconds fit 63 bits for 292,000 years")
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().now
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let state = Arc::clone(&self.state);
        let until = self.monotonic() + duration;
        Box::pin(poll_fn(move |context| {
            let mut state = state.lock();
            if until <= state.now {
                return Poll::Ready(());
            }
            state.sleepers.push(context.waker().clone());
            Poll::Pending
        }))
    }
}
