//! Resources and settings of a statement's runs.

use std::sync::Arc;

use datafusion::execution::{SessionState, TaskContext};
use exchange::{DistributionContext, QueryResources, lost_worker};
use scheduler::{Lease, QueryMemory, QueryShare};
use settings::Settings;
use tokio_util::sync::CancellationToken;
use types::{ObjectNames, QueryId, SqlError};
use url::Url;
use value_codec::encode::TextStyle;

use crate::first_plan::FirstPlan;
use crate::statement_progress::StatementProgress;

/// Resources and settings of one run.
#[derive(Debug, Clone)]
pub struct RunContext {
    pub query_id: QueryId,
    /// Cancels the run: everything that it waits for fails with `57014` at once.
    pub cancel: CancellationToken,
    pub settings: Arc<Settings>,
    /// Names of catalog objects in the statement's snapshot.
    pub names: Arc<dyn ObjectNames>,
    pub progress: Arc<StatementProgress>,
    /// Share of the query threads.
    pub thread_share: Arc<QueryShare>,
    pub first_plan: Arc<FirstPlan>,
    pub memory: Arc<QueryMemory>,
    /// Lease of the worker that it runs on; `None` if it needs no worker and runs in the server itself.
    pub lease: Option<Arc<Lease>>,
    /// Workers among which it may be distributed; `None` if it runs on the leased worker alone.
    pub distribution: Option<Arc<DistributionContext>>,
}

impl RunContext {
    /// Returns the context of a run in this process alone, for runs that consume incoming rows and therefore cannot
    /// start again.
    pub fn in_this_process(&self) -> Self {
        Self { distribution: None, ..self.clone() }
    }

    /// Returns the URL of the lost worker if that is the cause of `error`, and reports it to the cluster.
    pub fn report_lost_worker(&self, error: &SqlError) -> Option<Url> {
        let distribution = self.distribution.as_ref()?;
        distribution.report_lost_worker(error);
        lost_worker(error)
    }

    /// Returns the style in which the session shows values.
    #[must_use]
    pub fn text_style(&self) -> TextStyle {
        TextStyle { zone: self.settings.zone(), names: Arc::clone(&self.names) }
    }

    /// Creates the DataFusion context of a plan's operators, with the query's memory pool.
    pub fn task_context(&self, state: &SessionState) -> Arc<TaskContext> {
        self.resources().task(state)
    }

    /// Returns the resources for planning and running the query.
    pub fn resources(&self) -> QueryResources<'_> {
        QueryResources {
            cancel: &self.cancel,
            settings: &self.settings,
            share: &self.thread_share,
            memory: &self.memory,
            lease: self.lease.as_deref(),
        }
    }
}
