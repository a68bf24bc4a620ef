//! Evaluates scalar subqueries before the query that needs their values.

use std::sync::Arc;

use binder::Step;
use compile::cover;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;
use functions::error::from_datafusion;
use operators::{Division, plan_operators};
use optimizer::Optimized;
use tracing::Instrument;
use types::{Condition, SqlError, SqlResult};

use crate::compiled::{compiled, is_compiled};
use crate::plan::Planning;
use crate::prepared::Prepared;
use crate::reason::Reason;
use crate::spread::Spread;

impl Planning<'_> {
    /// Returns the value of a scalar subquery of one column: NULL if it has no rows.
    ///
    /// # Errors
    /// `21000` if it has more than one row.
    pub(super) async fn value(&self, subquery: Optimized) -> SqlResult<ScalarValue> {
        let schema = subquery.schema();
        let first = self.before();
        let operators = plan_operators(first.plan, &subquery, Division::None, first.resources.cancel).await?;
        let ready = match first.distributed(subquery.clone(), Arc::clone(&operators)).await? {
            Ok(ready) => ready,
            Err(reason) => first.here(subquery, operators, reason).await?,
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
    async fn here(
        &self,
        optimized: Optimized,
        undivided: Arc<dyn ExecutionPlan>,
        reason: Reason,
    ) -> SqlResult<Prepared> {
        let (settings, stop) = (self.resources.settings, self.resources.cancel);
        let operators = if is_compiled(&optimized, settings)? {
            compiled(self.plan, undivided, stop)?
        } else {
            let divided = plan_operators(self.plan, &optimized, Division::Threads, stop).await?;
            if settings.engine() { cover(divided).map_err(from_datafusion)? } else { divided }
        };
        Ok(self.prepared(operators, &self.plan.state, optimized, Spread::Instance(reason)))
    }
}
