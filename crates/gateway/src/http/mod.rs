//! The HTTP port: is it alive, does it take queries, and what has it counted.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;

pub(crate) mod metrics;

/// What Prometheus reads, and says it accepts.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers until `shutdown` fires.
pub(crate) async fn serve(gateway: Arc<Gateway>, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
    axum::serve(listener, router(gateway)).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(gateway)
}

/// The process answers; whether it can take queries is `/readyz`.
async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(gateway): State<Arc<Gateway>>) -> (StatusCode, String) {
    match gateway.readiness() {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

async fn metrics(State(gateway): State<Arc<Gateway>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPENMETRICS)], gateway.metrics_text())
}
