//! A query that is ready to run, in the instance or on workers.

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
    /// Logical plan that the operators implement; EXPLAIN reads its estimates.
    pub optimized: Arc<Optimized>,
    /// Context that the operators run in.
    pub task: Arc<TaskContext>,
    /// Location and reports; `None` if the cluster has no workers in other processes.
    pub place: Option<Place>,
}

impl Prepared {
    /// Returns the execution location, if the cluster has workers in other processes.
    pub fn spread(&self) -> Option<Spread> {
        self.place.as_ref().map(|place| place.spread.clone())
    }
}

/// Distributed execution of a query: its location and the reports of its tasks.
#[derive(Debug, Clone)]
pub struct Place {
    pub spread: Spread,
    /// Metrics that its tasks report, where they were requested.
    pub reports: Arc<Reports>,
}
