//! Time through a trait, so that storage and clusters can be simulated from a seed.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime};

/// Where time comes from: the wall for timestamps people see, a monotonic count for durations, and sleep.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Microseconds since 1970-01-01 UTC.
    fn now_us(&self) -> i64;
    /// Time since an arbitrary start; never goes back.
    fn monotonic(&self) -> Duration;
    /// Completes once `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The machine's own clock.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic count starts now.
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
