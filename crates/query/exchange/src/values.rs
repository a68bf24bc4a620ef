//! Subqueries of one value: they run before the query that needs the value, which goes with its plan.

use binder::{Division, Step};
use compile::cover;
use datafusion::scalar::ScalarValue;
use functions::error::from_datafusion;
use optimizer::Optimized;
use tracing::Instrument;
use types::{Condition, SqlError, SqlResult};

use crate::plan::Planning;
use crate::prepared::Prepared;
use crate::reason::Reason;
use crate::spread::Spread;

impl Planning<'_> {
    /// What a subquery of one column gives: NULL without a row.
    pub(super) async fn value(&self, subquery: Optimized) -> SqlResult<ScalarValue> {
        let schema = subquery.schema();
        let first = self.before();
        let ready = match first.stages_of(subquery.clone()).await? {
            Ok(ready) => ready,
            Err(reason) => first.here(subquery, reason).await?,
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

    /// The same, to be run by the instance alone.
    async fn here(&self, optimized: Optimized, reason: Reason) -> SqlResult<Prepared> {
        let operators = self.plan.operators(&optimized, Division::Threads, self.resources.cancel).await?;
        let operators = if self.resources.settings.engine() {
            Step::Compile.span().in_scope(|| cover(operators)).map_err(from_datafusion)?
        } else {
            operators
        };
        Ok(self.prepared(operators, &self.plan.state, optimized, Spread::Instance(reason)))
    }
}
