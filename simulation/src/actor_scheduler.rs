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
pub(super) struct ActorScheduler {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    blocked: Vec<BlockedActor>,
    now: Duration,
    /// Number of times that an actor has blocked.
    stops: u64,
}

#[derive(Debug)]
struct BlockedActor {
    what: &'static str,
    duration: Duration,
    go: oneshot::Sender<()>,
}

impl ActorScheduler {
    /// Blocks until the driver resumes the actor.
    pub(super) async fn block(self: &Arc<Self>, what: &'static str) {
        self.block_for(what, Duration::ZERO).await;
    }

    fn block_for(&self, what: &'static str, takes: Duration) -> impl Future<Output = ()> + Send + 'static {
        let (go, gone) = oneshot::channel();
        let mut state = self.state.lock();
        state.stops += 1;
        state.blocked.push(BlockedActor { what, duration: takes, go });
        // Dropping the world also ends the actors that are blocked.
        gone.map(drop)
    }

    /// Advances the clock.
    pub(super) fn advance(&self, time: Duration) {
        self.state.lock().now += time;
    }

    /// Returns the number of times that an actor has blocked.
    pub(super) fn block_count(&self) -> u64 {
        self.state.lock().stops
    }

    /// Returns the number of blocked actors.
    pub(super) fn blocked_count(&self) -> usize {
        let mut state = self.state.lock();
        state.blocked.retain(|waiting| !waiting.go.is_closed());
        state.blocked.len()
    }

    /// Resumes the actor at `position` and returns what it was waiting for.
    pub(super) fn resume(&self, position: usize) -> &'static str {
        let mut state = self.state.lock();
        let waiting = state.blocked.remove(position);
        state.now += waiting.duration + Duration::from_millis(1);
        // The actor may be gone.
        let _ = waiting.go.send(());
        waiting.what
    }
}

impl Clock for ActorScheduler {
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
        Box::pin(self.block_for("sleep", duration))
    }
}

impl objects::RequestLatency for ActorScheduler {
    fn wait(&self, what: &'static str) -> BoxFuture<'static, ()> {
        self.block_for(what, Duration::ZERO).boxed()
    }
}
