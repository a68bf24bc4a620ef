//! Where a query may run: on workers as long as these are there, in the process of the session where they are not what it needs.

use std::sync::Arc;

use binder::QueryPlan;
use exchange::{Cluster, Distribution, Planning, Prepared, Purpose, Spread, Undistributed, Without, lost_worker};
use types::{SqlError, SqlResult};

use crate::context::RunContext;
use crate::prepare::operators;

/// The attempts to run one query: each that fails for the workers' sake leaves less to try. No row may have been given before the next.
#[derive(Debug, Clone)]
pub struct Attempts {
    distribution: Option<Arc<Distribution>>,
    /// It was begun again without a worker that was lost: once.
    is_second: bool,
}

impl Attempts {
    /// Of a query in this context: none was made.
    pub fn of(context: &RunContext) -> Self {
        Self { distribution: context.distribution.clone(), is_second: false }
    }

    /// The attempts of a query that stays in this process.
    pub(crate) fn in_this_process() -> Self {
        Self { distribution: None, is_second: false }
    }

    /// The next one, ready to run.
    ///
    /// # Errors
    /// What is found while it is planned; where parts of it run for that, what [`Attempts::after`] is asked about.
    pub async fn prepare(&self, plan: &QueryPlan, context: &RunContext, purpose: Purpose) -> SqlResult<Prepared> {
        // Before anything is planned: system tables are read then, and the query's memory is shown there.
        let task = context.task(&plan.state);
        let Some(distribution) = &self.distribution else { return operators(plan, None, context, task, None).await };
        let planning = Planning::new(plan, context.resources(), distribution, purpose);
        let Undistributed { reason, planned } = match planning.stages().await? {
            Ok(ready) => return Ok(ready),
            Err(undistributed) => undistributed,
        };
        operators(plan, planned, context, task, Some(Spread::Instance(reason))).await
    }

    /// Takes notice of an error for the sake of other queries, however far this one has come.
    pub fn note(&self, error: &SqlError) {
        if let (Some(distribution), Some(worker)) = (&self.distribution, lost_worker(error)) {
            distribution.cluster.unreached(&worker);
        }
    }

    /// Takes notice of an error before which no row was given.
    ///
    /// # Errors
    /// The same, where another attempt would not help.
    pub fn after(&mut self, error: SqlError) -> SqlResult<()> {
        let Some(distribution) = &self.distribution else { return Err(error) };
        self.note(&error);
        match lost_worker(&error) {
            Some(worker) if !self.is_second => {
                tracing::warn!(%worker, error = error.message, "a query is begun again without a worker");
                let cluster: Arc<dyn Cluster> = Arc::new(Without::new(Arc::clone(&distribution.cluster), worker));
                self.distribution = Some(Arc::new(Distribution { cluster, ..distribution.as_ref().clone() }));
                self.is_second = true;
                Ok(())
            }
            _ => Err(error),
        }
    }
}
