//! Simulated clock and blocking: actors that wait for time or storage block until the driver resumes them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use types::Clock;

/// Blocked actors and the clock, which advances when one is resumed.
#[derive(Debug, Default)]
pub(super) struct Pace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    now: Duration,
    /// Number of times that an actor has blocked.
    stops: u64,
}

#[derive(Debug)]
struct Waiting {
    what: &'static str,
    takes: Duration,
    go: oneshot::Sender<()>,
}

impl Pace {
    /// Blocks until the driver resumes the actor.
    pub(super) async fn stop(self: &Arc<Self>, what: &'static str) {
        self.take(what, Duration::ZERO).await;
    }

    fn take(&self, what: &'static str, takes: Duration) -> impl Future<Output = ()> + Send + 'static {
        let (go, gone) = oneshot::channel();
        let mut state = self.state.lock();
        state.stops += 1;
        state.waiting.push(Waiting { what, takes, go });
        // Dropping the world also ends the actors that are blocked.
        gone.map(drop)
    }

    /// Advances the clock.
    pub(super) fn pass(&self, time: Duration) {
        self.state.lock().now += time;
    }

    /// Returns the number of times that an actor has blocked.
    pub(super) fn stops(&self) -> u64 {
        self.state.lock().stops
    }

    /// Returns the number of blocked actors.
    pub(super) fn waiting(&self) -> usize {
        let mut state = self.state.lock();
        state.waiting.retain(|waiting| !waiting.go.is_closed());
        state.waiting.len()
    }

    /// Resumes the actor at `position` and returns what it was waiting for.
    pub(super) fn go(&self, position: usize) -> &'static str {
        let mut state = self.state.lock();
        let waiting = state.waiting.remove(position);
        state.now += waiting.takes + Duration::from_millis(1);
        // The actor may be gone.
        let _ = waiting.go.send(());
        waiting.what
    }
}

impl Clock for Pace {
    fn now_us(&self) -> i64 {
        // In-memory objects carry the machine's time; the simulated time is later, so that no object is too new to be
        // an orphan.
        let since = i64::try_from(self.monotonic().as_micros()).expect("simulations are short");
        4_000_000_000_000_000 + since
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().now
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.take("sleep", duration))
    }
}

impl objects::RequestLatency for Pace {
    fn wait(&self, what: &'static str) -> BoxFuture<'static, ()> {
        self.take(what, Duration::ZERO).boxed()
    }
}
