//! What all connections share.

use std::io;
use std::sync::Arc;

use authentication::{Credentials, TlsError};
use cluster_service::Clusters;
use execution::Execution;
use parking_lot::Mutex;
use planner::Planner;
use prometheus_client::registry::Registry;
use session::backends::Backends;
use session::instance::Instance;
use session::metrics::Metrics;
use session::query_log::QueryLog;
use session::watchdog::STANDING;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use txn::Transactions;
use types::{Clock, Random};

use crate::config::GatewayConfig;
use crate::http;
use crate::pg;

/// The front doors over one warehouse.
pub struct Gateway {
    pub(crate) instance: Arc<Instance>,
    pub(crate) config: GatewayConfig,
    registry: Mutex<Registry>,
    stopping: CancellationToken,
}

impl Gateway {
    /// Puts the front doors together; nothing listens yet.
    ///
    /// # Errors
    /// [`TlsError`] where certificate or key cannot be used.
    pub fn new(
        planner: Arc<Planner>,
        execution: Arc<Execution>,
        transactions: Arc<Transactions>,
        clusters: Arc<Clusters>,
        config: GatewayConfig,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Arc<Self>, TlsError> {
        let credentials = Credentials::load(
            config.tls.as_ref(),
            config.superuser_password.as_deref(),
            Arc::clone(&transactions),
            Arc::clone(&clock),
            Arc::clone(&random),
        )?;
        let metrics = Arc::<Metrics>::default();
        let registry = Mutex::new(metrics.registry());
        let instance = Instance {
            planner,
            execution,
            transactions,
            clusters,
            credentials: Arc::new(credentials),
            query_log: QueryLog::new(config.query_log_rows),
            backends: Arc::new(Backends::new(config.connections_max, config.connections_reserved, clock.now_us())),
            metrics,
            clock,
            random,
        };
        let instance = Arc::new(instance);
        Ok(Arc::new(Self { instance, config, registry, stopping: CancellationToken::new() }))
    }

    /// What proves who is who.
    #[must_use]
    pub fn credentials(&self) -> &Arc<Credentials> {
        &self.instance.credentials
    }

    /// Logs threads of queries that stand, for as long as the server runs.
    pub async fn watch_threads(&self) {
        self.instance.watch_threads().await;
    }

    /// Serves PostgreSQL clients until `shutdown` fires and the last of them has gone: idle ones at once, running
    /// statements after they end or after the grace period, with 57P01.
    ///
    /// # Errors
    /// None at present; a connection that fails is its own matter.
    pub async fn serve_pg(self: &Arc<Self>, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        pg::server::serve(Arc::clone(self), listener, shutdown).await
    }

    /// Serves `/healthz`, `/readyz` and `/metrics` until `shutdown` fires.
    ///
    /// # Errors
    /// Where the listener fails.
    pub async fn serve_http(self: &Arc<Self>, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        http::serve(Arc::clone(self), listener, shutdown).await
    }

    /// As [`Instance::drop_left_temporary`].
    ///
    /// # Errors
    /// Where the catalog cannot be written.
    pub async fn drop_left_temporary(&self) -> types::SqlResult<()> {
        self.instance.drop_left_temporary().await
    }

    /// Keeps the workers of all clusters as they should be, and tells them what was loaded, for as long as the server runs.
    pub async fn keep_clusters(&self) {
        tokio::join!(
            self.instance.clusters.keep(&self.instance.transactions),
            self.instance.clusters.tell_of_loads(&self.instance.transactions)
        );
    }

    /// From now on `/readyz` says no, so that no new client is sent here.
    pub fn announce_shutdown(&self) {
        self.stopping.cancel();
    }

    /// Adds other crates' numbers to `/metrics`.
    pub fn register_metrics(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry.lock());
    }

    /// Whether queries can be taken.
    pub(crate) fn readiness(&self) -> Result<(), &'static str> {
        if self.stopping.is_cancelled() {
            return Err("shutting down");
        }
        if self.instance.transactions.is_poisoned() {
            return Err("the catalog could not be written: restart to recover");
        }
        Ok(())
    }

    pub(crate) fn metrics_text(&self) -> String {
        self.instance.metrics.connections.set(i64::try_from(self.instance.backends.count()).unwrap_or(i64::MAX));
        let standing = self.instance.standing(STANDING).len();
        self.instance.metrics.standing_threads.set(i64::try_from(standing).unwrap_or(i64::MAX));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry.lock())
            .expect("writing to a string does not fail");
        text
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("config", &self.config).finish_non_exhaustive()
    }
}
