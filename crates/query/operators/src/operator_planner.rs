//! Physical planner: DataFusion's, extended by the nodes `ProjectSet` and `SubPlan`.
//!
//! Its traits are implemented without `async`; the reason is given at `plan::StreamTable`.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::future::{BoxFuture, ready};
use optimizer::correlated_subqueries::SubPlan;
use optimizer::series::ProjectSet;
use plan::OperatorPlanning;

use crate::optimizer_rules::rules;
use crate::project_set::plan_project_set;
use crate::subplan::plan_sub_plan;

/// Returns Kiln's physical planner and its rules.
#[must_use]
pub fn operator_planning() -> OperatorPlanning {
    OperatorPlanning { planner: Arc::new(OperatorPlanner), rules }
}

/// Planner that makes operators of logical plans.
#[derive(Debug)]
pub(crate) struct OperatorPlanner;

impl QueryPlanner for OperatorPlanner {
    fn create_physical_plan<'a, 'b, 'c, 'd>(
        &'a self,
        plan: &'b LogicalPlan,
        session: &'c dyn Session,
    ) -> BoxFuture<'d, Result<Arc<dyn ExecutionPlan>>>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        Self: 'd,
    {
        create_operators(plan, session)
    }
}

/// Plans operators outside of the trait with its four lifetimes: with one lifetime, the compiler proves once that plans
/// are `Send`.
fn create_operators<'a>(
    plan: &'a LogicalPlan,
    session: &'a dyn Session,
) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>> {
    Box::pin(async move {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(NodePlanner)]);
        planner.create_physical_plan(plan, session).await
    })
}

/// Planner of Kiln's own nodes.
struct NodePlanner;

impl NodePlanner {
    fn plan_node(
        node: &dyn UserDefinedLogicalNode,
        input: (&LogicalPlan, &Arc<dyn ExecutionPlan>),
        planner: &dyn PhysicalPlanner,
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let node = node.as_any();
        if let Some(set) = node.downcast_ref::<ProjectSet>() {
            return plan_project_set(set, input, planner, session, context).map(Some);
        }
        let subplan = node.downcast_ref::<SubPlan>();
        subplan.map(|subplan| plan_sub_plan(subplan, input, planner, session, context)).transpose()
    }
}

impl ExtensionPlanner for NodePlanner {
    fn plan_extension<'a, 'b, 'c, 'd, 'e, 'f, 'g, 'h, 'i>(
        &'a self,
        planner: &'b dyn PhysicalPlanner,
        node: &'c dyn UserDefinedLogicalNode,
        logical_inputs: &'d [&'e LogicalPlan],
        physical_inputs: &'f [Arc<dyn ExecutionPlan>],
        session: &'g dyn Session,
        context: &'h PhysicalPlanningContext,
    ) -> BoxFuture<'i, Result<Option<Arc<dyn ExecutionPlan>>>>
    where
        'a: 'i,
        'b: 'i,
        'c: 'i,
        'd: 'i,
        'e: 'i,
        'f: 'i,
        'g: 'i,
        'h: 'i,
        Self: 'i,
    {
        Box::pin(ready(match (logical_inputs, physical_inputs) {
            ([input], [operator]) => Self::plan_node(node, (input, operator), planner, session, context),
            _ => Ok(None),
        }))
    }
}
