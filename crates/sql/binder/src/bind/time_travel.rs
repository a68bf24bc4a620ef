//! Evaluated AS OF clauses: their encoding in relation names, and the statement context of a historical snapshot.
//!
//! The target is written as a relation's catalog name, because DataFusion passes no other part of a name through
//! unchanged.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, TableVersion, Value};
use session_context::{SnapshotPin, StatementContext};
use types::{CommitTs, SqlError, SqlResult, TimeTravelTarget};

/// Prefix of the catalog name of a relation with AS OF. No written name contains its last byte.
const TIME_TRAVEL_PREFIX: &str = "past\u{1}";

/// Encodes a target as the catalog part of a relation name.
pub(crate) fn encode_target(moment: TimeTravelTarget) -> String {
    match moment {
        TimeTravelTarget::Newest => format!("{TIME_TRAVEL_PREFIX}n"),
        TimeTravelTarget::Time(us) => format!("{TIME_TRAVEL_PREFIX}t{us}"),
        TimeTravelTarget::Commit(commit) => format!("{TIME_TRAVEL_PREFIX}c{commit}"),
    }
}

/// Decodes a name made by [`encode_target`].
pub(crate) fn decode_target(catalog: &str) -> Option<TimeTravelTarget> {
    let moment = catalog.strip_prefix(TIME_TRAVEL_PREFIX)?;
    match moment.split_at_checked(1)? {
        ("n", "") => Some(TimeTravelTarget::Newest),
        ("t", us) => us.parse().ok().map(TimeTravelTarget::Time),
        ("c", commit) => commit.parse().ok().map(|commit| TimeTravelTarget::Commit(CommitTs(commit))),
        _ => None,
    }
}

/// Returns the evaluated target of an AS OF clause.
pub(crate) fn evaluated_target(version: &TableVersion) -> SqlResult<TimeTravelTarget> {
    let undecided = || SqlError::internal("the moment of AS OF is not decided");
    let TableVersion::VersionAsOf(ast::Expr::Value(mark)) = version else { return Err(undecided()) };
    let Value::SingleQuotedString(mark) = &mark.value else { return Err(undecided()) };
    decode_target(mark).ok_or_else(undecided)
}

/// Returns the statement's context at a historical snapshot, in which names are resolved as of then, and a pin on the
/// objects of that snapshot.
pub fn context_at_snapshot(
    context: &StatementContext,
    moment: TimeTravelTarget,
) -> SqlResult<(Arc<StatementContext>, SnapshotPin)> {
    let past = context.inputs.state(moment)?;
    Ok((Arc::new(StatementContext { snapshot: past.state, ..context.clone() }), past.pin))
}
