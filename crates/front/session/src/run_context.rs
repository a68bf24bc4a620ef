//! Context that a statement runs in: its worker, memory, settings and cancellation.

use std::sync::Arc;

use executor::RunContext;
use scheduler::{Priority, QueryShare};
use session_context::StatementContext;
use settings::Settings;
use tokio_util::sync::CancellationToken;

use crate::cluster_slot::AdmissionGrant;
use crate::result_rows::QueryGuard;
use crate::running_statement::Statement;
use crate::session::Session;

impl Session {
    /// Creates the run context of a statement, and the [`QueryGuard`] that keeps it running: dropping it stops the
    /// work.
    pub(crate) fn run_context(&self, statement: &Statement) -> (RunContext, QueryGuard) {
        self.run_context_with(statement, &self.statement_context(statement))
    }

    /// Does the same as [`Session::run_context`] with an existing statement context.
    pub(crate) fn run_context_with(
        &self,
        statement: &Statement,
        statement_context: &Arc<StatementContext>,
    ) -> (RunContext, QueryGuard) {
        let lease = self.admission.as_ref().map(|admitted| Arc::clone(&admitted.lease));
        let cancel = lease.as_ref().map_or_else(CancellationToken::new, |lease| lease.child_shutdown_token());
        let distribution = self.admission.as_ref().and_then(|AdmissionGrant { slot: turn, lease }| {
            let distribution = self.instance.clusters.distribution(turn.cluster, lease, self.settings())?;
            Some(match statement.excluded_worker() {
                Some(lost) => Arc::new(distribution.without(lost.clone())),
                None => distribution,
            })
        });
        let context = RunContext {
            query_id: statement.query_id,
            cancel: cancel.clone(),
            settings: Arc::clone(self.settings()),
            names: Arc::new(system_catalog::catalog_names(statement_context)),
            progress: Arc::default(),
            thread_share: Arc::new(QueryShare::new(priority(self.settings())).with_query(statement.query_id)),
            first_plan: Arc::default(),
            memory: Arc::default(),
            lease,
            distribution,
        };
        {
            let mut doing = self.backend_guard.backend.activity.lock();
            doing.memory = Some(Arc::clone(&context.memory));
            doing.share = Some(Arc::clone(&context.thread_share));
        }
        let looked_us = self.transaction_block.snapshot_us().unwrap_or(statement.started_us);
        let admitted = self.admission.clone();
        (
            context,
            QueryGuard {
                _cancel: cancel.drop_guard(),
                _snapshot: self.transaction_block.view(),
                admission: admitted,
                snapshot_us: looked_us,
            },
        )
    }
}

/// Returns the priority of the session's statements.
fn priority(settings: &Settings) -> Priority {
    match settings.priority() {
        "low" => Priority::Low,
        "high" => Priority::High,
        _ => Priority::Normal,
    }
}
