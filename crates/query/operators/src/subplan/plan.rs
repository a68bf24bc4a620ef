//! From a [`SubPlan`] to its operator.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result as DfResult;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use optimizer::dependent::SubPlan;

use super::exec::SubPlanExec;
use crate::shared_rows::RowsOfRun;

/// Makes operators of SubPlans.
pub(crate) struct SubPlans;

#[async_trait]
impl ExtensionPlanner for SubPlans {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(subplan), [input], [operator]) =
            (node.as_any().downcast_ref::<SubPlan>(), logical_inputs, physical_inputs)
        else {
            return Ok(None);
        };
        let physical = |expr| planner.create_physical_expr(expr, input.schema(), session, context);
        let exprs = subplan.exprs.iter().map(physical).collect::<DfResult<_>>()?;
        let schema = Arc::clone(subplan.schema().inner());
        Ok(Some(Arc::new(SubPlanExec::try_new(Arc::clone(operator), exprs, RowsOfRun::so_far(session), schema)?)))
    }
}
