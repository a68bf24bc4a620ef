//! What a statement ran first: EXPLAIN ANALYZE tells afterwards what its operators did.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;

/// The operators of the first plan that a statement ran, and how long they took to plan.
#[derive(Debug, Default)]
pub struct Ran(OnceLock<(Arc<dyn ExecutionPlan>, Duration)>);

impl Ran {
    pub(crate) fn note(&self, operators: &Arc<dyn ExecutionPlan>, planning: Duration) {
        // Later plans are of references and conflicts, which are no part of what was asked.
        let _ = self.0.set((Arc::clone(operators), planning));
    }

    pub(crate) fn first(&self) -> Option<(Arc<dyn ExecutionPlan>, Duration)> {
        self.0.get().cloned()
    }
}
