//! The answers to probes and to Prometheus: is the server alive, does it take queries, what has it counted.

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
use session::watchdog::{STANDING, STUCK};
use supervisor::ServiceStatus;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connections::BoundedListener;

/// The content type of metrics, which Prometheus says it accepts.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers `/healthz`, `/readyz` and `/metrics`.
pub struct Probes {
    instance: Arc<Instance>,
    registry: Registry,
    stopping: CancellationToken,
}

impl Probes {
    /// Answers for one warehouse.
    #[must_use]
    pub fn new(instance: Arc<Instance>) -> Arc<Self> {
        let registry = instance.metrics.registry();
        Arc::new(Self { instance, registry, stopping: CancellationToken::new() })
    }

    /// Serves until `shutdown` fires.
    ///
    /// # Errors
    /// Where the listener fails.
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

    /// From now on `/readyz` says no, so that no new client is sent here.
    pub fn announce_shutdown(&self) {
        self.stopping.cancel();
    }

    /// Whether queries can be taken.
    fn readiness(&self) -> Result<(), &'static str> {
        if self.stopping.is_cancelled() {
            return Err("shutting down");
        }
        if self.instance.transactions.is_poisoned() {
            return Err("the catalog could not be written: restart to recover");
        }
        Ok(())
    }

    /// The services whose work fails, or that are about to be started again.
    fn failing_services(&self) -> impl Iterator<Item = ServiceStatus> {
        self.instance.services.statuses().into_iter().filter(ServiceStatus::is_failing)
    }

    fn metrics_text(&self) -> String {
        let metrics = &self.instance.metrics;
        metrics.connections.set(i64::try_from(self.instance.backends.count()).unwrap_or(i64::MAX));
        let standing = self.instance.standing(STANDING).len();
        metrics.standing_threads.set(i64::try_from(standing).unwrap_or(i64::MAX));
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

/// The process answers, and no query thread is stuck for good; whether it can take queries is `/readyz`.
async fn healthz(State(probes): State<Arc<Probes>>) -> (StatusCode, String) {
    match probes.instance.standing(STUCK).as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        stuck => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", stuck.join("\n"))),
    }
}

/// Standing threads and failing services are named and keep no client away: the others answer. Anybody may ask, so the reasons stay in `sys.service`.
async fn readyz(State(probes): State<Arc<Probes>>) -> (StatusCode, String) {
    let standing = probes.instance.standing(STANDING).into_iter().map(|thread| thread + "\n");
    let failing = probes.failing_services().map(|it| format!("service {} is {}: see sys.service\n", it.name, it.state));
    let troubles: String = standing.chain(failing).collect();
    match probes.readiness() {
        Ok(()) => (StatusCode::OK, format!("ready\n{troubles}")),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n{troubles}")),
    }
}

async fn metrics(State(probes): State<Arc<Probes>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPENMETRICS)], probes.metrics_text())
}
