//! Physical planning of [`ProjectSet`] nodes.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::PhysicalPlanner;
use optimizer::series::{ProjectSet, SetColumn};

use super::exec::{ProjectSetColumn, ProjectSetExec};

/// Creates the operator of a ProjectSet node over that of its input.
///
/// # Errors
/// An expression that cannot be planned.
pub(crate) fn plan_project_set(
    set: &ProjectSet,
    (input, operator): (&LogicalPlan, &Arc<dyn ExecutionPlan>),
    planner: &dyn PhysicalPlanner,
    session: &dyn Session,
    context: &PhysicalPlanningContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let physical = |expr: &Expr| -> Result<Arc<dyn PhysicalExpr>> {
        planner.create_physical_expr(expr, input.schema(), session, context)
    };
    let columns = set.columns.iter().map(|column| {
        Ok(match column {
            SetColumn::Input(expr) => ProjectSetColumn::Passed(physical(expr)?),
            SetColumn::Series { kind, args } => {
                ProjectSetColumn::Series { kind: *kind, args: args.iter().map(physical).collect::<Result<_>>()? }
            }
            SetColumn::Ordinal => ProjectSetColumn::Ordinal,
        })
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let schema = Arc::clone(set.schema.inner());
    Ok(Arc::new(ProjectSetExec::new(Arc::clone(operator), columns, schema)))
}
