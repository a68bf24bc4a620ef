//! Compiles LIMIT and OFFSET.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use engine::pipeline::Step;

use super::{Builder, Chain};

/// A limit, whichever operator implements it.
pub(super) struct Limit<'a> {
    input: &'a Arc<dyn ExecutionPlan>,
    skip: usize,
    fetch: Option<usize>,
}

impl<'a> Limit<'a> {
    /// Returns the limit of an operator; `None` for other operators.
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
    /// Compiles a limit over rows in the order that its input declares.
    pub(super) fn limit(&mut self, limit: &Limit<'_>) -> Option<Chain> {
        let chain = self.below(limit.input)?.in_order_of(limit.input)?;
        self.limited(chain, limit.skip, limit.fetch)
    }

    /// Appends a LIMIT step.
    pub(super) fn limited(&mut self, mut chain: Chain, skip: usize, fetch: Option<usize>) -> Option<Chain> {
        let (skip, fetch) = (u64::try_from(skip).ok()?, fetch.map(u64::try_from).transpose().ok()?);
        // Filtering rows below the limit would let other rows take their place.
        chain.forget_origins();
        chain.push(&Step::Limit { number: self.limits, skip, fetch });
        self.limits += 1;
        Some(chain)
    }
}
