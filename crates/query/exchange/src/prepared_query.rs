//! A query that is ready to run, in the instance or on workers.

use std::sync::Arc;

use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use optimizer::OptimizedPlan;

use crate::run_location::RunLocation;
use crate::task_reports::TaskReports;

/// A query that is ready to run.
#[derive(Debug, Clone)]
pub struct PreparedQuery {
    pub operators: Arc<dyn ExecutionPlan>,
    /// Logical plan that the operators implement; EXPLAIN reads its estimates.
    pub optimized: Arc<OptimizedPlan>,
    /// Context that the operators run in.
    pub task: Arc<TaskContext>,
    /// Location and reports; `None` if the cluster has no workers in other processes.
    pub distributed: Option<DistributedRun>,
}

impl PreparedQuery {
    /// Returns the execution location, if the cluster has workers in other processes.
    pub fn location(&self) -> Option<RunLocation> {
        self.distributed.as_ref().map(|place| place.location.clone())
    }
}

/// Distributed execution of a query: its location and the reports of its tasks.
#[derive(Debug, Clone)]
pub struct DistributedRun {
    pub location: RunLocation,
    /// Metrics that its tasks report, where they were requested.
    pub reports: Arc<TaskReports>,
}
