//! What one query has to run with.

use std::sync::Arc;

use datafusion::execution::{SessionState, TaskContext};
use scheduler::{Lease, QueryMemory, QueryShare};
use settings::Settings;
use tokio_util::sync::CancellationToken;

/// What one query has to run with: its stop, its settings, and what it gets of threads and memory.
#[derive(Debug, Clone, Copy)]
pub struct QueryResources<'a> {
    /// Fires when the query shall stop.
    pub cancel: &'a CancellationToken,
    pub settings: &'a Settings,
    pub share: &'a QueryShare,
    pub memory: &'a QueryMemory,
    /// The worker that it runs on; `None` for the process itself.
    pub lease: Option<&'a Lease>,
}

impl QueryResources<'_> {
    /// The context of a plan's operators: the query's own memory of what all share, or of its worker's part of it.
    #[must_use]
    pub fn task(&self, state: &SessionState) -> Arc<TaskContext> {
        let mut runtime = state.runtime_env().as_ref().clone();
        if let Some(lease) = self.lease {
            runtime.memory_pool = lease.memory();
        }
        let runtime = self.memory.limited(&runtime, self.settings.query_memory());
        Arc::new(TaskContext::from(state).with_runtime(runtime))
    }
}
