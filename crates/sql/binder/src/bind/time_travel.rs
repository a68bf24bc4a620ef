//! Context of a statement at a historical snapshot, which AS OF selects.

use std::sync::Arc;

use session_context::{SnapshotPin, StatementContext};
use types::{SqlResult, TimeTravelTarget};

/// Returns the statement's context at a historical snapshot, in which names are resolved as of then, and a pin on the
/// objects of that snapshot.
pub fn context_at_snapshot(
    context: &StatementContext,
    moment: TimeTravelTarget,
) -> SqlResult<(Arc<StatementContext>, SnapshotPin)> {
    let past = context.inputs.state(moment)?;
    Ok((Arc::new(StatementContext { snapshot: past.state, ..context.clone() }), past.pin))
}
