//! Record of the plan that a statement ran, read by EXPLAIN ANALYZE afterwards.

use std::sync::OnceLock;
use std::time::Duration;

use exchange::PreparedQuery;

/// First plan that a statement ran, with its planning time.
#[derive(Debug, Default)]
pub struct FirstPlan(OnceLock<(PreparedQuery, Duration)>);

impl FirstPlan {
    /// Records a plan; only the first one counts.
    pub fn record(&self, prepared: &PreparedQuery, planning: Duration) {
        // Later plans check references and conflicts: EXPLAIN does not show them.
        let _ = self.0.set((prepared.clone(), planning));
    }

    /// Returns the first plan with its planning time.
    pub fn get(&self) -> Option<(PreparedQuery, Duration)> {
        self.0.get().cloned()
    }
}
