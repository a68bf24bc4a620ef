//! The HTTP port: is it alive, does it take queries, and what has it counted.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use session::watchdog::{STANDING, STUCK};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::gateway::Gateway;
use crate::http::connections::BoundedListener;

mod connections;

/// What Prometheus reads, and says it accepts.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers until `shutdown` fires.
pub(crate) async fn serve(gateway: Arc<Gateway>, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
    let listener = BoundedListener::new(listener, &gateway.instance.clock);
    axum::serve(listener, router(gateway)).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(gateway)
}

/// The process answers, and no query thread is stuck for good; whether it can take queries is `/readyz`.
async fn healthz(State(gateway): State<Arc<Gateway>>) -> (StatusCode, String) {
    match gateway.instance.standing(STUCK).as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        stuck => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", stuck.join("\n"))),
    }
}

/// Standing threads are named and keep no client away: the others answer.
async fn readyz(State(gateway): State<Arc<Gateway>>) -> (StatusCode, String) {
    let standing: String = gateway.instance.standing(STANDING).into_iter().map(|thread| thread + "\n").collect();
    match gateway.readiness() {
        Ok(()) => (StatusCode::OK, format!("ready\n{standing}")),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n{standing}")),
    }
}

async fn metrics(State(gateway): State<Arc<Gateway>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPENMETRICS)], gateway.metrics_text())
}
