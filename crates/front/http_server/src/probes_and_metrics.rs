//! Responses to Kubernetes probes and Prometheus: liveness, readiness and metrics.

use std::fmt;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use session::instance::Instance;
use session::thread_watchdog::{STALLED_AFTER, STUCK_AFTER};
use supervisor::ServiceStatus;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::bounded_connections::BoundedListener;

/// Content type of the metrics, one that Prometheus accepts.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Handler of `/healthz`, `/readyz` and `/metrics`.
pub struct Probes {
    instance: Arc<Instance>,
    registry: Registry,
    shutdown_announced: CancellationToken,
}

impl Probes {
    /// Creates the handler for one instance.
    #[must_use]
    pub fn new(instance: Arc<Instance>) -> Arc<Self> {
        let registry = instance.metrics.registry();
        Arc::new(Self { instance, registry, shutdown_announced: CancellationToken::new() })
    }

    /// Serves HTTP until `shutdown` is cancelled.
    ///
    /// # Errors
    /// Errors of the listener.
    pub fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(self.serve_unboxed(listener, shutdown))
    }

    async fn serve_unboxed(self: Arc<Self>, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        let listener = BoundedListener::new(listener, &self.instance.clock);
        axum::serve(listener, router(self)).with_graceful_shutdown(shutdown.cancelled_owned()).await
    }

    /// Makes `/readyz` fail from now on, so that no new client is sent here.
    pub fn announce_shutdown(&self) {
        self.shutdown_announced.cancel();
    }

    /// Checks whether the instance accepts queries; the error is the reason why not.
    fn readiness(&self) -> Result<(), &'static str> {
        if self.shutdown_announced.is_cancelled() {
            return Err("shutting down");
        }
        if self.instance.transactions.is_poisoned() {
            return Err("the catalog could not be written: restart to recover");
        }
        Ok(())
    }

    /// Returns the background services that fail or wait to be restarted.
    fn failing_services(&self) -> impl Iterator<Item = ServiceStatus> {
        self.instance.services.statuses().into_iter().filter(ServiceStatus::is_failing)
    }

    /// Updates the gauges and encodes all metrics.
    fn metrics_text(&self) -> String {
        let metrics = &self.instance.metrics;
        metrics.connections.set(i64::try_from(self.instance.backends.count()).unwrap_or(i64::MAX));
        let stalled = self.instance.stalled_threads(STALLED_AFTER).len();
        metrics.stalled_threads.set(i64::try_from(stalled).unwrap_or(i64::MAX));
        metrics.failing_services.set(i64::try_from(self.failing_services().count()).unwrap_or(i64::MAX));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("writing to a string does not fail");
        text
    }
}

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probes").finish_non_exhaustive()
    }
}

fn router(probes: Arc<Probes>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(probes)
}

/// Liveness: fails only if a query thread is stuck for good; readiness for queries is `/readyz`.
async fn healthz(State(probes): State<Arc<Probes>>) -> (StatusCode, String) {
    match probes.instance.stalled_threads(STUCK_AFTER).as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        stuck => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", stuck.join("\n"))),
    }
}

/// Readiness. Long-running threads and failing services are listed but do not fail it, because everything else still
/// works. The reasons of failures stay in `sys.service`, since anybody may send this request.
async fn readyz(State(probes): State<Arc<Probes>>) -> (StatusCode, String) {
    let stalled = probes.instance.stalled_threads(STALLED_AFTER).into_iter().map(|thread| thread + "\n");
    let failing = probes.failing_services().map(|it| format!("service {} is {}: see sys.service\n", it.name, it.state));
    let troubles: String = stalled.chain(failing).collect();
    match probes.readiness() {
        Ok(()) => (StatusCode::OK, format!("ready\n{troubles}")),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n{troubles}")),
    }
}

async fn metrics(State(probes): State<Arc<Probes>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPENMETRICS)], probes.metrics_text())
}
