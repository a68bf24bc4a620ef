//! Recorder of the estimates of all nodes of a plan.

use std::collections::HashMap;

use datafusion::logical_expr::LogicalPlan;

use super::{estimate_recording, estimate_relation};

/// Estimated rows of a plan's nodes, by node address. The default records nothing.
#[derive(Debug, Default)]
pub(crate) struct NodeEstimates(Option<HashMap<*const LogicalPlan, f64>>);

impl NodeEstimates {
    /// Estimates all nodes of `plan`.
    pub(crate) fn from_plan(plan: &LogicalPlan) -> Self {
        let mut noted = Self(Some(HashMap::new()));
        estimate_recording(plan, &mut noted);
        noted
    }

    pub(super) fn record(&mut self, part: &LogicalPlan, rows: f64) {
        if let Some(noted) = &mut self.0 {
            noted.insert(std::ptr::from_ref(part), rows);
        }
    }

    /// Returns the estimated rows of a node of the plan.
    pub(crate) fn rows(&self, part: &LogicalPlan) -> f64 {
        let known = self.0.as_ref().and_then(|noted| noted.get(&std::ptr::from_ref(part)).copied());
        // A filter whose estimate is cached does not visit the scan below it.
        known.unwrap_or_else(|| estimate_relation(part).rows)
    }
}
