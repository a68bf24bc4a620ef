//! What all sessions of a server share.

use std::fmt;
use std::sync::Arc;

use authentication::Credentials;
use cluster_service::Clusters;
use execution::Execution;
use planner::Planner;
use txn::Transactions;
use types::{Clock, Random};

use crate::backends::Backends;
use crate::metrics::Metrics;
use crate::query_log::QueryLog;

/// One warehouse, as sessions reach it.
pub(crate) struct Instance {
    pub(crate) planner: Arc<Planner>,
    pub(crate) execution: Arc<Execution>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) query_log: QueryLog,
    pub(crate) backends: Arc<Backends>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}
