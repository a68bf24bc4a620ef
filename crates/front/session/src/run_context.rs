//! Context that a statement runs in: its worker, memory, settings and cancellation.

use std::sync::Arc;

use executor::RunContext;
use scheduler::{Priority, QueryShare};
use session_context::StatementContext;
use settings::Settings;
use tokio_util::sync::CancellationToken;

use crate::rows::Hold;
use crate::session::Session;
use crate::statement::Statement;
use crate::turn::Admitted;

impl Session {
    /// Creates the run context of a statement, and the [`Hold`] that keeps it running: dropping it stops the work.
    pub(crate) fn run_context(&self, statement: &Statement) -> (RunContext, Hold) {
        self.run_context_of(statement, &self.context(statement))
    }

    /// Does the same as [`Session::run_context`] with an existing statement context.
    pub(crate) fn run_context_of(&self, statement: &Statement, names: &Arc<StatementContext>) -> (RunContext, Hold) {
        let lease = self.admitted.as_ref().map(|admitted| Arc::clone(&admitted.lease));
        let cancel = lease.as_ref().map_or_else(CancellationToken::new, |lease| lease.child_token());
        let distribution = self.admitted.as_ref().and_then(|Admitted { turn, lease }| {
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
            names: Arc::new(system_catalog::names(names)),
            progress: Arc::default(),
            share: Arc::new(QueryShare::new(priority(self.settings())).with_query(statement.query_id)),
            ran: Arc::default(),
            memory: Arc::default(),
            lease,
            distribution,
        };
        {
            let mut doing = self.seat.backend.doing.lock();
            doing.memory = Some(Arc::clone(&context.memory));
            doing.share = Some(Arc::clone(&context.share));
        }
        let looked_us = self.block.looked_us().unwrap_or(statement.started_us);
        let admitted = self.admitted.clone();
        (context, Hold { _cancel: cancel.drop_guard(), _snapshot: self.block.view(), admitted, looked_us })
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
