//! Moments of AS OF once they are decided: the names that say them, and the statement as it would be then.
//!
//! The moment is written as a relation's catalog, because nothing else of a name goes through DataFusion unchanged.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, TableVersion, Value};
use session_context::{Pin, StatementContext};
use types::{CommitTs, Moment, SqlError, SqlResult};

/// The prefix of the catalog in a past relation's name. No written name has its last byte.
const MARK: &str = "past\u{1}";

/// The first part of the names of relations as of the moment.
pub(crate) fn mark(moment: Moment) -> String {
    match moment {
        Moment::Newest => format!("{MARK}n"),
        Moment::Time(us) => format!("{MARK}t{us}"),
        Moment::Commit(commit) => format!("{MARK}c{commit}"),
    }
}

/// The moment that [`mark`] was made of.
pub(crate) fn marked(catalog: &str) -> Option<Moment> {
    let moment = catalog.strip_prefix(MARK)?;
    match moment.split_at_checked(1)? {
        ("n", "") => Some(Moment::Newest),
        ("t", us) => us.parse().ok().map(Moment::Time),
        ("c", commit) => commit.parse().ok().map(|commit| Moment::Commit(CommitTs(commit))),
        _ => None,
    }
}

/// The moment that was decided, in the place of what was written.
pub(crate) fn decided(version: &TableVersion) -> SqlResult<Moment> {
    let undecided = || SqlError::internal("the moment of AS OF is not decided");
    let TableVersion::VersionAsOf(ast::Expr::Value(mark)) = version else { return Err(undecided()) };
    let Value::SingleQuotedString(mark) = &mark.value else { return Err(undecided()) };
    marked(mark).ok_or_else(undecided)
}

/// The statement as it would be at the moment: names mean what they meant then. With what keeps the objects of then.
pub fn statement_at(context: &StatementContext, moment: Moment) -> SqlResult<(Arc<StatementContext>, Pin)> {
    let past = context.inputs.state(moment)?;
    Ok((Arc::new(StatementContext { snapshot: past.state, ..context.clone() }), past.pin))
}
