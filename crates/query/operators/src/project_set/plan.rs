//! From a [`ProjectSet`] to its operator.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use optimizer::series::{ProjectSet, SetColumn};

use super::exec::{Column, ProjectSetExec};

/// Makes operators of ProjectSets.
pub(crate) struct ProjectSets;

#[async_trait]
impl ExtensionPlanner for ProjectSets {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let (Some(set), [input], [operator]) =
            (node.as_any().downcast_ref::<ProjectSet>(), logical_inputs, physical_inputs)
        else {
            return Ok(None);
        };
        let physical = |expr: &Expr| -> Result<Arc<dyn PhysicalExpr>> {
            planner.create_physical_expr(expr, input.schema(), session, context)
        };
        let columns = set.columns.iter().map(|column| {
            Ok(match column {
                SetColumn::Passed(expr) => Column::Passed(physical(expr)?),
                SetColumn::Series { kind, args } => {
                    Column::Series { kind: *kind, args: args.iter().map(physical).collect::<Result<_>>()? }
                }
                SetColumn::Ordinal => Column::Ordinal,
            })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let schema = Arc::clone(set.schema.inner());
        Ok(Some(Arc::new(ProjectSetExec::new(Arc::clone(operator), columns, schema))))
    }
}
