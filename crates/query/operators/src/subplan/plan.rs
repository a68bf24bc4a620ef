//! Physical planning of [`SubPlan`] nodes.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result as DfResult;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::PhysicalPlanner;
use optimizer::correlated_subqueries::SubPlan;

use super::exec::SubPlanExec;
use crate::shared_rows::SharedRowsRegistry;

/// Creates the operator of a SubPlan node over that of its input.
///
/// # Errors
/// An expression that cannot be planned.
pub(crate) fn plan_sub_plan(
    subplan: &SubPlan,
    (input, operator): (&LogicalPlan, &Arc<dyn ExecutionPlan>),
    planner: &dyn PhysicalPlanner,
    session: &dyn Session,
    context: &PhysicalPlanningContext,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let physical = |expr| planner.create_physical_expr(expr, input.schema(), session, context);
    let exprs = subplan.exprs.iter().map(physical).collect::<DfResult<_>>()?;
    let schema = Arc::clone(subplan.schema().inner());
    Ok(Arc::new(SubPlanExec::try_new(Arc::clone(operator), exprs, SharedRowsRegistry::snapshot(session), schema)?))
}
