//! Keys of one side of a join, got before the rest runs, so that scans of other stages leave out what would find nothing.

use binder::Step;
use datafusion::physical_plan::execute_stream;
use functions::error::from_datafusion;
use functions::{KEYS_MAX, KeySet};
use futures::TryStreamExt;
use optimizer::{KeyQuestion, KeysAsked, Optimized};
use tracing::Instrument;
use types::SqlResult;

use crate::plan::Planning;

impl Planning<'_> {
    /// The query with the keys in it that are worth asking for first; `None` where none are.
    pub(super) async fn with_keys(&self, optimized: &Optimized) -> SqlResult<Option<Optimized>> {
        let (mut optimized, mut has_keys) = (optimized.clone(), false);
        let state = &self.plan.state;
        let mut asked = KeysAsked::of(self.workers.len(), self.distribution.exchange.keys_from_rows);
        while let Some(question) = optimized.key_question(&mut asked).map_err(from_datafusion)? {
            if let Some(keys) = self.keys(&question).instrument(Step::EvaluateSubplans.span()).await? {
                optimized = optimized.with_keys(&question, keys, state).map_err(from_datafusion)?;
                has_keys = true;
            }
        }
        Ok(has_keys.then_some(optimized))
    }

    /// The keys that workers find; `None` where these cannot be asked, or where the keys are too many after all.
    async fn keys(&self, question: &KeyQuestion) -> SqlResult<Option<KeySet>> {
        let optimized = question.optimized(&self.plan.state).map_err(from_datafusion)?;
        let Ok(ready) = Box::pin(self.before().stages_of(optimized)).await? else { return Ok(None) };
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
        Ok(Some(KeySet::of(&keys)))
    }
}
