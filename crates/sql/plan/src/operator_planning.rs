//! The physical planner and its rules, which a later crate (`operators`) supplies to the binder.

use std::sync::Arc;

use datafusion::execution::context::QueryPlanner;
use datafusion::physical_optimizer::PhysicalOptimizerRule;

/// Optimizer rules over physical operators, in order.
pub type OperatorRules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// Physical planner and rules over physical operators, for every session state.
#[derive(Debug, Clone)]
pub struct OperatorPlanning {
    /// Planner from logical plans to operators.
    pub planner: Arc<dyn QueryPlanner + Send + Sync>,
    /// Function that returns the rules, with Kiln's own unless the argument is false.
    pub rules: fn(bool) -> OperatorRules,
}
