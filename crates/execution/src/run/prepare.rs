//! From a plan to the operators that run it here.

use std::sync::Arc;

use binder::{Division, Phase, QueryPlan};
use compile::{cover, is_whole};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use functions::error::from_datafusion;
use optimizer::Optimized;
use types::SqlResult;

use crate::RunContext;
use crate::distribute::{Reports, Spread};

/// A query that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) operators: Arc<dyn ExecutionPlan>,
    /// What they were made of: EXPLAIN asks what was expected of it.
    pub(crate) optimized: Arc<Optimized>,
    /// What they run with.
    pub(crate) task: Arc<TaskContext>,
    /// `None` where there are no workers of other processes.
    pub(crate) place: Option<Place>,
}

impl Prepared {
    /// Where it runs, if that may be in other processes.
    pub(crate) fn spread(&self) -> Option<Spread> {
        self.place.as_ref().map(|place| place.spread.clone())
    }
}

/// Where a query of a cluster of processes runs.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) spread: Spread,
    /// What its tasks tell, where they are asked.
    pub(crate) reports: Arc<Reports>,
}

/// The operators that run a query in this process; what the engine can run of them is its own, if it is on.
///
/// # Errors
/// What constant folding and scans find; `57014` when cancelled.
pub(crate) async fn operators(plan: &QueryPlan, context: &RunContext, spread: Option<Spread>) -> SqlResult<Prepared> {
    let stop = &context.cancel;
    // Before anything is planned: system tables are read then, and the query's memory is shown there.
    let task = context.task(&plan.state);
    let prepared = |operators, optimized| Prepared {
        operators,
        optimized: Arc::new(optimized),
        task,
        place: spread.map(|spread| Place { spread, reports: Arc::default() }),
    };
    let optimized = plan.optimized(stop).await?;
    if !context.settings.engine() {
        let operators = plan.operators(&optimized, Division::Threads, stop).await?;
        return Ok(prepared(operators, optimized));
    }
    if optimized.has_work() && !optimized.hides_plans().map_err(from_datafusion)? {
        let again = optimized.anew().map_err(from_datafusion)?;
        let covered = programs(plan, plan.operators(&again, Division::None, stop).await?)?;
        if is_whole(&covered) {
            return Ok(prepared(covered, again));
        }
    }
    let covered = programs(plan, plan.operators(&optimized, Division::Threads, stop).await?)?;
    Ok(prepared(covered, optimized))
}

fn programs(plan: &QueryPlan, operators: Arc<dyn ExecutionPlan>) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let begun = plan.phases.begin();
    let covered = cover(operators);
    plan.phases.end(Phase::Programs, begun);
    covered.map_err(from_datafusion)
}
