//! Waiting for time or storage until the driver lets one go on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use types::Clock;

/// All that wait, and the time, which passes while somebody waits for it.
#[derive(Debug, Default)]
pub(super) struct Pace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    now: Duration,
    /// Counts stops.
    stops: u64,
}

#[derive(Debug)]
struct Waiting {
    what: &'static str,
    takes: Duration,
    go: oneshot::Sender<()>,
}

impl Pace {
    /// Waits until the driver says to go on.
    pub(super) async fn stop(self: &Arc<Self>, what: &'static str) {
        self.take(what, Duration::ZERO).await;
    }

    fn take(&self, what: &'static str, takes: Duration) -> impl Future<Output = ()> + Send + 'static {
        let (go, gone) = oneshot::channel();
        let mut state = self.state.lock();
        state.stops += 1;
        state.waiting.push(Waiting { what, takes, go });
        // A world that ends takes those with it that wait.
        gone.map(drop)
    }

    /// Time passes.
    pub(super) fn pass(&self, time: Duration) {
        self.state.lock().now += time;
    }

    /// How often anyone has stopped.
    pub(super) fn stops(&self) -> u64 {
        self.state.lock().stops
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        let mut state = self.state.lock();
        state.waiting.retain(|waiting| !waiting.go.is_closed());
        state.waiting.len()
    }

    /// Lets the one at `position` go on; what it waited for.
    pub(super) fn go(&self, position: usize) -> &'static str {
        let mut state = self.state.lock();
        let waiting = state.waiting.remove(position);
        state.now += waiting.takes + Duration::from_millis(1);
        // Nobody may be there any more.
        let _ = waiting.go.send(());
        waiting.what
    }
}

impl Clock for Pace {
    fn now_us(&self) -> i64 {
        // Objects in memory get their time from the machine: here it is later, so that none is too new to be an orphan.
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

impl objects::Pace for Pace {
    fn wait(&self, what: &'static str) -> BoxFuture<'static, ()> {
        self.take(what, Duration::ZERO).boxed()
    }
}
