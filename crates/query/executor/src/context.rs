//! What a statement's runs have around them.

use std::sync::Arc;

use datafusion::execution::{SessionState, TaskContext};
use exchange::{Distribution, QueryResources, lost_worker};
use scheduler::{Lease, QueryMemory, QueryShare};
use settings::Settings;
use tokio_util::sync::CancellationToken;
use types::{ObjectNames, QueryId, SqlError};
use url::Url;
use value_codec::encode::TextStyle;

use crate::progress::Progress;
use crate::ran::Ran;

/// The surroundings of one run.
#[derive(Debug, Clone)]
pub struct RunContext {
    pub query_id: QueryId,
    /// Fires when the run shall stop: everything it waits for answers 57014 at once.
    pub cancel: CancellationToken,
    pub settings: Arc<Settings>,
    /// Names of catalog objects, as the statement sees them.
    pub names: Arc<dyn ObjectNames>,
    pub progress: Arc<Progress>,
    /// What it gets of the threads.
    pub share: Arc<QueryShare>,
    pub ran: Arc<Ran>,
    pub memory: Arc<QueryMemory>,
    /// The worker that it runs on; `None` for what needs none: the process itself.
    pub lease: Option<Arc<Lease>>,
    /// The workers among which it may be divided; `None` where it runs on the lease alone.
    pub distribution: Option<Arc<Distribution>>,
}

impl RunContext {
    /// The same, in this process alone: for what is fed rows as they come, and cannot begin again.
    pub fn here(&self) -> Self {
        Self { distribution: None, ..self.clone() }
    }

    /// Returns the lost worker that a run failed for, if that is why, and reports it to the cluster.
    pub fn report_lost_worker(&self, error: &SqlError) -> Option<Url> {
        let distribution = self.distribution.as_ref()?;
        distribution.report_lost_worker(error);
        lost_worker(error)
    }

    /// How the session shows values.
    #[must_use]
    pub fn text_style(&self) -> TextStyle {
        TextStyle { zone: self.settings.zone(), names: Arc::clone(&self.names) }
    }

    /// The context of a plan's operators: the query's own memory of what all share, or of its worker's part of it.
    pub fn task(&self, state: &SessionState) -> Arc<TaskContext> {
        self.resources().task(state)
    }

    /// What its query has to run with.
    pub fn resources(&self) -> QueryResources<'_> {
        QueryResources {
            cancel: &self.cancel,
            settings: &self.settings,
            share: &self.share,
            memory: &self.memory,
            lease: self.lease.as_deref(),
        }
    }
}
