//! DataFusion's physical planner, extended by the nodes `ProjectSet` and `SubPlan`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use plan::OperatorPlanning;

use crate::project_set::ProjectSets;
use crate::rules::rules;
use crate::subplan::SubPlans;

/// Kiln's physical planner and rules.
#[must_use]
pub fn operator_planning() -> OperatorPlanning {
    OperatorPlanning { planner: Arc::new(OperatorPlanner), rules }
}

/// Makes operators of the nodes of logical plans.
#[derive(Debug)]
pub(crate) struct OperatorPlanner;

#[async_trait]
impl QueryPlanner for OperatorPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(ProjectSets), Arc::new(SubPlans)]);
        planner.create_physical_plan(plan, session).await
    }
}
