//! Semi-join reduction: computes the keys of a small join side first, so that scans of other stages skip rows without a
//! match.

use binder::Step;
use datafusion::physical_plan::execute_stream;
use functions::error::from_datafusion;
use functions::{KEYS_MAX, KeySet};
use futures::TryStreamExt;
use optimizer::{OptimizedPlan, ReductionState, SemiJoinReduction};
use tracing::Instrument;
use types::SqlResult;

use crate::distributed_planner::DistributedPlanner;

impl DistributedPlanner<'_> {
    /// Returns the query with the key sets that are worth computing first; `None` if there are none.
    pub(super) async fn add_semi_join_keys(&self, optimized: &OptimizedPlan) -> SqlResult<Option<OptimizedPlan>> {
        let (mut optimized, mut has_keys) = (optimized.clone(), false);
        let state = &self.plan.state;
        let mut asked = ReductionState::new(self.workers.len(), self.distribution.exchange.semi_join_rows_min);
        while let Some(question) = optimized.next_semi_join_reduction(&mut asked).map_err(from_datafusion)? {
            if let Some(keys) = self.compute_keys(&question).instrument(Step::EvaluateSubplans.span()).await? {
                optimized = optimized.with_key_filter(&question, keys, state).map_err(from_datafusion)?;
                has_keys = true;
            }
        }
        Ok(has_keys.then_some(optimized))
    }

    /// Computes the keys of one join side on workers; `None` if that cannot be distributed or the keys are too many.
    async fn compute_keys(&self, question: &SemiJoinReduction) -> SqlResult<Option<KeySet>> {
        let optimized = question.optimize(&self.plan.state).map_err(from_datafusion)?;
        let Ok(ready) = Box::pin(self.for_subplan().plan_subquery_stages(optimized)).await? else { return Ok(None) };
        let _step = Step::Run.span();
        let mut rows = execute_stream(ready.operators, ready.task).map_err(from_datafusion)?;
        let mut keys = Vec::new();
        while let Some(batch) = rows.try_next().await.map_err(from_datafusion)? {
            let Some(values) = KeySet::values(batch.column(0)) else { return Ok(None) };
            if KEYS_MAX < keys.len() + values.len() {
                return Ok(None);
            }
            keys.extend(values);
        }
        Ok(Some(KeySet::from_keys(&keys)))
    }
}
