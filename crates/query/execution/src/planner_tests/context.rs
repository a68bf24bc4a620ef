//! Statement contexts over a test's catalog.

use std::sync::Arc;

use catalog::{CatalogState, Role};
use session_context::{NoActivity, StatementContext};
use settings::Settings;
use types::random::SeededRandom;
use types::{Oid, QueryId};

/// Returns the context of a statement of the bootstrap role, at a fixed moment in 2027, that sees `snapshot`.
pub(super) fn context(
    snapshot: Arc<CatalogState>,
    new_oid: impl Fn() -> Oid + Send + Sync + 'static,
) -> StatementContext {
    let role = Arc::clone(snapshot.role(Role::BOOTSTRAP).expect("a fresh catalog has its role"));
    StatementContext {
        has_rows: true,
        commit: types::CommitTs(1),
        time_travel: Arc::new(session_context::NoTimeTravel),
        inputs: Arc::default(),
        arguments: Arc::default(),
        assignments: Arc::default(),
        sequences: Arc::new(session_context::NoSequenceNumbers),
        settings: Arc::new(Settings::default()),
        session_role: Arc::clone(&role),
        role,
        snapshot,
        database: "kiln".to_owned(),
        query_id: QueryId(1),
        statement_us: 1_800_000_000_000_000,
        transaction_us: 1_800_000_000_000_000,
        backend_pid: 4_242,
        new_oid: Arc::new(new_oid),
        activity: Arc::new(NoActivity),
        random: Arc::new(SeededRandom::new(1)),
        clock: Arc::new(types::SystemClock::new()),
    }
}
