//! Limits.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use engine::pipeline::Step;

use super::{Builder, Chain};

/// What lets some of the rows pass.
pub(super) struct Limit<'a> {
    input: &'a Arc<dyn ExecutionPlan>,
    skip: usize,
    fetch: Option<usize>,
}

impl<'a> Limit<'a> {
    pub(super) fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
        if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
            return Some(Self { input: limit.input(), skip: limit.skip(), fetch: limit.fetch() });
        }
        if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
            return Some(Self { input: limit.input(), skip: 0, fetch: Some(limit.fetch()) });
        }
        let gather = plan.downcast_ref::<CoalescePartitionsExec>()?;
        gather.fetch().is_some().then(|| Self { input: gather.input(), skip: 0, fetch: gather.fetch() })
    }
}

impl Builder<'_> {
    pub(super) fn limit(&mut self, limit: &Limit<'_>) -> Option<Chain> {
        let chain = self.below(limit.input)?.in_order_of(limit.input)?;
        self.limited(chain, limit.skip, limit.fetch)
    }

    /// Rows but the first few, and no more than so many of these.
    pub(super) fn limited(&mut self, mut chain: Chain, skip: usize, fetch: Option<usize>) -> Option<Chain> {
        let (skip, fetch) = (u64::try_from(skip).ok()?, fetch.map(u64::try_from).transpose().ok()?);
        // Others would take the places of rows that were left out before.
        chain.forget_origins();
        chain.push(&Step::Limit { number: self.limits, skip, fetch });
        self.limits += 1;
        Some(chain)
    }
}
