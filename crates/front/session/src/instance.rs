//! State that all sessions of a server share.

use std::fmt;
use std::sync::Arc;

use authentication::Credentials;
use cluster_service::Clusters;
use execution::Execution;
use planner::Planner;
use supervisor::Supervisor;
use txn::Transactions;
use types::{Clock, Random, ServiceHealth};

use crate::backends::Backends;
use crate::metrics::Metrics;
use crate::query_log::QueryLog;

/// Server state of one warehouse: services, catalog, clusters and the list of sessions.
pub struct Instance {
    pub planner: Arc<Planner>,
    pub execution: Arc<Execution>,
    pub transactions: Arc<Transactions>,
    pub clusters: Arc<Clusters>,
    pub credentials: Arc<Credentials>,
    pub query_log: QueryLog,
    pub backends: Arc<Backends>,
    pub metrics: Arc<Metrics>,
    pub services: Arc<Supervisor>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
}

impl Instance {
    /// Reconciles the workers of all clusters and announces new shards to them, for as long as the server runs.
    pub async fn reconcile_clusters(&self, health: &ServiceHealth) {
        tokio::join!(
            self.clusters.run_reconciliation(&self.transactions, health),
            self.clusters.announce_new_shards(&self.transactions)
        );
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}
