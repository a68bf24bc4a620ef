//! The supervisor: starts services, starts those again that panic or end, and stops them.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use types::{Clock, ServiceHealth};

use crate::service::{Service, ServiceStatus};

/// Before a service is started again; twice as long after each run that was short …
const RESTART_DELAY_FIRST: Duration = Duration::from_secs(1);
/// … but no longer than this. A run that lasted so long was not short.
const RESTART_DELAY_MAX: Duration = Duration::from_secs(60);

/// The background services of a server: they run until they are stopped.
pub struct Supervisor {
    clock: Arc<dyn Clock>,
    /// In the order of their starts.
    services: Mutex<Vec<Supervised>>,
}

/// A service and the task that runs it.
struct Supervised {
    service: Arc<Service>,
    task: JoinHandle<()>,
}

/// Begins a run of a service, and the next after each that ended. Boxed, so that supervision is compiled once and not
/// for each service.
type RunService = Box<dyn Fn(ServiceHealth) -> BoxFuture<'static, ()> + Send + Sync>;

/// The end that a service may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServiceEnd {
    /// It runs until it is stopped; if it ends before, it is started again.
    WhenStopped,
    /// It ends by itself once its work is done.
    WhenDone,
}

impl Supervisor {
    /// No services yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, services: Mutex::default() }
    }

    /// Starts a service that runs until it is stopped: where `run` of its `parts` panics or returns, it is called again
    /// after a pause.
    pub fn start<P, F>(
        &self,
        name: &'static str,
        parts: &P,
        run: impl Fn(P, ServiceHealth) -> F + Send + Sync + 'static,
    ) where
        P: Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.supervise(name, ServiceEnd::WhenStopped, boxed(parts.clone(), run));
    }

    /// Starts a service that is done when `run` returns; where it panics, it is called again after a pause.
    pub fn start_until_done<P, F>(
        &self,
        name: &'static str,
        parts: &P,
        run: impl Fn(P, ServiceHealth) -> F + Send + Sync + 'static,
    ) where
        P: Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.supervise(name, ServiceEnd::WhenDone, boxed(parts.clone(), run));
    }

    fn supervise(&self, name: &'static str, service_end: ServiceEnd, run: RunService) {
        let service = Arc::new(Service::new(name, self.clock.now_us()));
        let task = tokio::spawn(run_with_restarts(Arc::clone(&service), service_end, run, Arc::clone(&self.clock)));
        self.services.lock().push(Supervised { service, task });
    }

    /// Every service that was not stopped, in the order of their starts.
    #[must_use]
    pub fn statuses(&self) -> Vec<ServiceStatus> {
        self.services.lock().iter().map(|supervised| supervised.service.status()).collect()
    }

    /// Stops the services whose names `is_meant` picks, the last started first, and waits until each has left the step
    /// it was in.
    pub async fn stop(&self, is_meant: impl Fn(&str) -> bool) {
        let mut meant: Vec<Supervised> = {
            let mut services = self.services.lock();
            let (meant, others) = services.drain(..).partition(|supervised| is_meant(supervised.service.name));
            *services = others;
            meant
        };
        for supervised in meant.iter().rev() {
            supervised.task.abort();
        }
        while let Some(supervised) = meant.pop() {
            // Aborted, which is no failure.
            let _ = supervised.task.await;
        }
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").finish_non_exhaustive()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        for supervised in self.services.get_mut() {
            supervised.task.abort();
        }
    }
}

fn boxed<P, F>(parts: P, run: impl Fn(P, ServiceHealth) -> F + Send + Sync + 'static) -> RunService
where
    P: Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    Box::new(move |health| Box::pin(run(parts.clone(), health)))
}

/// Runs a service, again and again where it must not end.
async fn run_with_restarts(service: Arc<Service>, service_end: ServiceEnd, run: RunService, clock: Arc<dyn Clock>) {
    let mut health = service.health();
    let mut pause = RESTART_DELAY_FIRST;
    loop {
        let started = clock.monotonic();
        // What a run leaves half done is what a crash would leave: services read anew what there is to do.
        let ended = AssertUnwindSafe(async { run(health).await }).catch_unwind().await;
        let reason = match ended {
            Ok(()) if service_end == ServiceEnd::WhenDone => return service.record_done(),
            Ok(()) => "it ended".to_owned(),
            Err(panic) => format!("it panicked: {}", panic_message(&*panic)),
        };
        if RESTART_DELAY_MAX <= clock.monotonic().saturating_sub(started) {
            pause = RESTART_DELAY_FIRST;
        }
        tracing::error!(service = service.name, reason, ?pause, "a background service has ended; it is started again");
        service.record_end(reason);
        clock.sleep(pause).await;
        pause = (pause * 2).min(RESTART_DELAY_MAX);
        health = service.restart(clock.now_us());
    }
}

/// The text of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

#[cfg(test)]
mod tests;
