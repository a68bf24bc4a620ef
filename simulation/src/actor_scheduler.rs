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
    state: Mutex<SchedulerState>,
}

#[derive(Debug, Default)]
struct SchedulerState {
    blocked: Vec<BlockedActor>,
    now: Duration,
    /// Number of times that an actor has blocked.
    block_count: u64,
}

#[derive(Debug)]
struct BlockedActor {
    operation: &'static str,
    duration: Duration,
    resume_sender: oneshot::Sender<()>,
}

impl ActorScheduler {
    /// Blocks until the driver resumes the actor.
    pub(super) async fn block(self: &Arc<Self>, operation: &'static str) {
        self.block_for(operation, Duration::ZERO).await;
    }

    fn block_for(&self, operation: &'static str, takes: Duration) -> impl Future<Output = ()> + Send + 'static {
        let (resume_sender, gone) = oneshot::channel();
        let mut state = self.state.lock();
        state.block_count += 1;
        state.blocked.push(BlockedActor { operation, duration: takes, resume_sender });
        // Dropping the world also ends the actors that are blocked.
        gone.map(drop)
    }

    /// Advances the clock.
    pub(super) fn advance(&self, time: Duration) {
        self.state.lock().now += time;
    }

    /// Returns the number of times that an actor has blocked.
    pub(super) fn block_count(&self) -> u64 {
        self.state.lock().block_count
    }

    /// Returns the number of blocked actors.
    pub(super) fn blocked_count(&self) -> usize {
        let mut state = self.state.lock();
        state.blocked.retain(|waiting| !waiting.resume_sender.is_closed());
        state.blocked.len()
    }

    /// Resumes the actor at `position` and returns what it was waiting for.
    pub(super) fn resume(&self, position: usize) -> &'static str {
        let mut state = self.state.lock();
        let waiting = state.blocked.remove(position);
        state.now += waiting.duration + Duration::from_millis(1);
        // The actor may be gone.
        let _ = waiting.resume_sender.send(());
        waiting.operation
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
    fn wait(&self, operation: &'static str) -> BoxFuture<'static, ()> {
        self.block_for(operation, Duration::ZERO).boxed()
    }
}
