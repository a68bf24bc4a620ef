//! The operators of a plan, made by DataFusion's physical planner.

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use functions::error::from_datafusion;
use plan::levels;
use plan::stop::stoppable;
use tokio_util::sync::CancellationToken;
use types::SqlResult;
use types::stack::PlanningStack;

use crate::Optimized;
use crate::dependent::lift;
use crate::shared::RowsOfRun;

impl Optimized {
    /// The operators of one run of the plan, and of what makes its shared rows. They fail with `57014` soon after `stop` fires.
    ///
    /// # Errors
    /// Errors of scans that are planned, `54001` for too many levels, and bugs.
    pub async fn operators(&self, state: &SessionState, stop: &CancellationToken) -> SqlResult<Arc<dyn ExecutionPlan>> {
        if self.shared.is_empty() {
            return operators(&self.plan, state, stop).await;
        }
        let (state, rows) = RowsOfRun::within(state);
        for shared in &self.shared {
            rows.add(&shared.table, &shared.columns, operators(&shared.plan, &state, stop).await?);
        }
        operators(&self.plan, &state, stop).await
    }
}

async fn operators(
    plan: &LogicalPlan,
    state: &SessionState,
    stop: &CancellationToken,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let plan = lift(plan).map_err(from_datafusion)?;
    let operators = async {
        let operators = state.query_planner().create_physical_plan(&plan, state).await?;
        levels::check_operators(&operators)?;
        stoppable(operators, stop)
    };
    PlanningStack::new(operators).await.map_err(from_datafusion)
}
