//! Evaluates scalar subqueries before the query that needs their values.

use std::sync::Arc;

use binder::Step;
use compile::compile_plan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;
use functions::error::from_datafusion;
use operators::{Threading, plan_operators};
use optimizer::OptimizedPlan;
use tracing::Instrument;
use types::{Condition, SqlError, SqlResult};

use crate::check_distributable::LocalReason;
use crate::distributed_planner::DistributedPlanner;
use crate::local_plan::{compile_local, is_planned_undivided};
use crate::prepared_query::PreparedQuery;
use crate::run_location::RunLocation;

impl DistributedPlanner<'_> {
    /// Returns the value of a scalar subquery of one column: NULL if it has no rows.
    ///
    /// # Errors
    /// `21000` if it has more than one row.
    pub(super) async fn evaluate_scalar_subquery(&self, subquery: OptimizedPlan) -> SqlResult<ScalarValue> {
        let schema = subquery.schema();
        let first = self.for_subplan();
        let operators = plan_operators(first.plan, &subquery, Threading::Single, first.resources.cancel).await?;
        let ready = match first.distribute(subquery.clone(), Arc::clone(&operators)).await? {
            Ok(ready) => ready,
            Err(reason) => first.prepare_locally(subquery, operators, reason).await?,
        };
        let batches = datafusion::physical_plan::collect(ready.operators, ready.task)
            .instrument(Step::Run.span())
            .await
            .map_err(from_datafusion)?;
        let mut rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch.column(0), row)));
        let wanted = schema.field(0).data_type();
        let value = match (rows.next(), rows.next()) {
            (None, _) => ScalarValue::try_from(wanted),
            (Some((column, row)), None) => {
                ScalarValue::try_from_array(column, row).and_then(|value| value.cast_to(wanted))
            }
            (Some(_), Some(_)) => {
                let message = "more than one row returned by a subquery used as an expression";
                return Err(SqlError::new(Condition::CardinalityViolation, message));
            }
        };
        value.map_err(from_datafusion)
    }

    /// Prepares a subquery to run in the instance.
    async fn prepare_locally(
        &self,
        optimized: OptimizedPlan,
        undivided: Arc<dyn ExecutionPlan>,
        reason: LocalReason,
    ) -> SqlResult<PreparedQuery> {
        let (settings, stop) = (self.resources.settings, self.resources.cancel);
        let operators = if is_planned_undivided(&optimized, settings)? {
            compile_local(self.plan, undivided, stop)?
        } else {
            let divided = plan_operators(self.plan, &optimized, Threading::Multiple, stop).await?;
            if settings.engine() { compile_plan(divided).map_err(from_datafusion)? } else { divided }
        };
        Ok(self.prepare(operators, &self.plan.state, optimized, RunLocation::Instance(reason)))
    }
}
