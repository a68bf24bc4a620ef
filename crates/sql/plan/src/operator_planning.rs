//! The physical planner and its rules, which a later crate (`operators`) gives to the binder.

use std::sync::Arc;

use datafusion::execution::context::QueryPlanner;
use datafusion::physical_optimizer::PhysicalOptimizerRule;

/// Rules over operators, in order.
pub type OperatorRules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// The physical planner and the rules over operators that every session state gets.
#[derive(Debug, Clone)]
pub struct OperatorPlanning {
    /// Makes operators of logical plans.
    pub planner: Arc<dyn QueryPlanner + Send + Sync>,
    /// The rules that go over them, with Kiln's own unless the argument is false.
    pub rules: fn(bool) -> OperatorRules,
}
