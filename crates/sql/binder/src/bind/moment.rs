//! Evaluated AS OF clauses: their encoding in relation names, and the statement context of a historical snapshot.
//!
//! The target is written as a relation's catalog name, because DataFusion passes no other part of a name through
//! unchanged.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, TableVersion, Value};
use session_context::{Pin, StatementContext};
use types::{CommitTs, Moment, SqlError, SqlResult};

/// Prefix of the catalog name of a relation with AS OF. No written name contains its last byte.
const MARK: &str = "past\u{1}";

/// Encodes a target as the catalog part of a relation name.
pub(crate) fn mark(moment: Moment) -> String {
    match moment {
        Moment::Newest => format!("{MARK}n"),
        Moment::Time(us) => format!("{MARK}t{us}"),
        Moment::Commit(commit) => format!("{MARK}c{commit}"),
    }
}

/// Decodes a name made by [`mark`].
pub(crate) fn marked(catalog: &str) -> Option<Moment> {
    let moment = catalog.strip_prefix(MARK)?;
    match moment.split_at_checked(1)? {
        ("n", "") => Some(Moment::Newest),
        ("t", us) => us.parse().ok().map(Moment::Time),
        ("c", commit) => commit.parse().ok().map(|commit| Moment::Commit(CommitTs(commit))),
        _ => None,
    }
}

/// Returns the evaluated target of an AS OF clause.
pub(crate) fn decided(version: &TableVersion) -> SqlResult<Moment> {
    let undecided = || SqlError::internal("the moment of AS OF is not decided");
    let TableVersion::VersionAsOf(ast::Expr::Value(mark)) = version else { return Err(undecided()) };
    let Value::SingleQuotedString(mark) = &mark.value else { return Err(undecided()) };
    marked(mark).ok_or_else(undecided)
}

/// Returns the statement's context at a historical snapshot, in which names are resolved as of then, and a pin on the
/// objects of that snapshot.
pub fn statement_at(context: &StatementContext, moment: Moment) -> SqlResult<(Arc<StatementContext>, Pin)> {
    let past = context.inputs.state(moment)?;
    Ok((Arc::new(StatementContext { snapshot: past.state, ..context.clone() }), past.pin))
}
