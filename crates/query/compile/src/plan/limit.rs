//! Compiles LIMIT and OFFSET.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use engine::pipeline::Step;

use super::{OpenPipelines, ProgramBuilder};

/// A limit, whichever operator implements it.
pub(super) struct Limit<'a> {
    input: &'a Arc<dyn ExecutionPlan>,
    skip: usize,
    fetch: Option<usize>,
}

impl<'a> Limit<'a> {
    /// Returns the limit of an operator; `None` for other operators.
    pub(super) fn from_plan(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Self> {
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

impl ProgramBuilder<'_> {
    /// Compiles a limit over rows in the order that its input declares.
    pub(super) fn lower_limit(&mut self, limit: &Limit<'_>) -> Option<OpenPipelines> {
        let chain = self.lower_input(limit.input)?.require_order_of(limit.input)?;
        self.add_limit(chain, limit.skip, limit.fetch)
    }

    /// Appends a LIMIT step.
    pub(super) fn add_limit(
        &mut self,
        mut chain: OpenPipelines,
        skip: usize,
        fetch: Option<usize>,
    ) -> Option<OpenPipelines> {
        let (skip, fetch) = (u64::try_from(skip).ok()?, fetch.map(u64::try_from).transpose().ok()?);
        // Filtering rows below the limit would let other rows take their place.
        chain.block_filters();
        chain.push(&Step::Limit { counter: self.limits, skip, fetch });
        self.limits += 1;
        Some(chain)
    }
}
