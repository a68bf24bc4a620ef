//! Resources of one query.

use std::sync::Arc;

use datafusion::execution::{SessionState, TaskContext};
use scheduler::{Lease, QueryMemory, QueryShare};
use settings::Settings;
use tokio_util::sync::CancellationToken;

/// Resources of one query: cancellation, settings, and its share of threads and memory.
#[derive(Debug, Clone, Copy)]
pub struct QueryResources<'a> {
    /// Cancelled when the query has to stop.
    pub cancel: &'a CancellationToken,
    pub settings: &'a Settings,
    pub share: &'a QueryShare,
    pub memory: &'a QueryMemory,
    /// Lease of the worker that the query runs on; `None` for the process itself.
    pub lease: Option<&'a Lease>,
}

impl QueryResources<'_> {
    /// Returns the execution context of a plan's operators. Its memory pool is the query's own, within the worker's
    /// pool or that of the process.
    #[must_use]
    pub fn task(&self, state: &SessionState) -> Arc<TaskContext> {
        let mut runtime = state.runtime_env().as_ref().clone();
        if let Some(lease) = self.lease {
            runtime.memory_pool = lease.memory();
        }
        let runtime = self.memory.limit_runtime(&runtime, self.settings.query_memory());
        Arc::new(TaskContext::from(state).with_runtime(runtime))
    }
}
