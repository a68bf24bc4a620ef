//! Context that a statement is planned in: the catalog as its transaction sees it, settings, roles, and state of the
//! session.

use std::sync::Arc;

use catalog::{CatalogState, Role};
use session_context::StatementContext;
use types::CommitTs;

use crate::running_statement::Statement;
use crate::session::Session;

impl Session {
    /// Returns the context to plan a statement in.
    pub(crate) fn statement_context(&self, statement: &Statement) -> Arc<StatementContext> {
        let view = self.transaction_block.view();
        self.build_statement_context(view.ts, view.state, statement)
    }

    /// Returns the context to plan a statement in whose plan is cached: a catalog without rows, so that the plan keeps
    /// none alive.
    pub(crate) fn statement_context_without_rows(&self, statement: &Statement) -> Arc<StatementContext> {
        let view = self.transaction_block.view();
        let mut context = self.build_statement_context(view.ts, Arc::new(view.state.without_rows()), statement);
        let bare = Arc::make_mut(&mut context);
        bare.has_rows = false;
        context
    }

    fn build_statement_context(
        &self,
        commit: CommitTs,
        snapshot: Arc<CatalogState>,
        statement: &Statement,
    ) -> Arc<StatementContext> {
        let held = self.transaction_block.session_state();
        // ALTER ROLE of another session takes effect with the next statement.
        let fresh = |role: &Arc<Role>| Arc::clone(snapshot.role(role.oid).unwrap_or(role));
        Arc::new(StatementContext {
            has_rows: true,
            settings: Arc::clone(&held.settings),
            role: fresh(&held.role),
            session_role: fresh(&held.session_role),
            database: self.backend_guard.backend.database.clone(),
            query_id: statement.query_id,
            statement_us: statement.started_us,
            transaction_us: self.transaction_block.started_us().unwrap_or(statement.started_us),
            backend_pid: self.backend_guard.backend.pid,
            new_oid: Arc::clone(&self.new_oid),
            activity: Arc::clone(&self.instance) as Arc<dyn session_context::Activity>,
            random: Arc::clone(&self.instance.random),
            clock: Arc::clone(&self.instance.clock),
            assignments: Arc::clone(&self.assignments),
            commit,
            arguments: Arc::default(),
            time_travel: Arc::clone(&self.commit_history) as Arc<dyn session_context::TimeTravel>,
            inputs: Arc::clone(&self.inputs),
            sequences: Arc::clone(&self.sequences) as Arc<dyn session_context::SequenceNumbers>,
            snapshot,
        })
    }
}
