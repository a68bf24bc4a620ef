//! A query that is ready to run, here or on workers.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use optimizer::Optimized;

use crate::reports::Reports;
use crate::spread::Spread;

/// A query that is ready to run.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub operators: Arc<dyn ExecutionPlan>,
    /// What they were made of: EXPLAIN asks what was expected of it.
    pub optimized: Arc<Optimized>,
    /// What they run with.
    pub task: Arc<TaskContext>,
    /// `None` where there are no workers of other processes.
    pub place: Option<Place>,
}

impl Prepared {
    /// Where it runs, if that may be in other processes.
    pub fn spread(&self) -> Option<Spread> {
        self.place.as_ref().map(|place| place.spread.clone())
    }
}

/// Where a query of a cluster of processes runs.
#[derive(Debug, Clone)]
pub struct Place {
    pub spread: Spread,
    /// What its tasks tell, where they are asked.
    pub reports: Arc<Reports>,
}
