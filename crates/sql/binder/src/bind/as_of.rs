//! AS OF: relations as they were.
//!
//! A moment is decided before the statement is planned, because names mean what they meant then. What decides it can be a parameter:
//! until it has a value the statement is planned on what is committed now, and again when it has one.

use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{self, Query, TableFactor, TableVersion, Value, VisitorMut};
use functions::error::from_datafusion;
use syntax::Walk;
use types::{CommitTs, Condition, Moment, SqlError, SqlResult, SqlType};

use super::{Binder, expression, moment, parameter};

const PLACE: &str = "AS OF";

/// Puts a moment in the place of every AS OF of the query.
pub(super) fn decide(binder: &Binder<'_>, query: &mut Query) -> SqlResult<()> {
    match query.walk_mut(&mut Decide(binder)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Decide<'b, 'a>(&'b Binder<'a>);

impl VisitorMut for Decide<'_, '_> {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        let TableFactor::Table { version: Some(version), .. } = factor else { return ControlFlow::Continue(()) };
        match moment_of(self.0, version) {
            Ok(moment) => {
                let mark = Value::SingleQuotedString(moment::mark(moment));
                *version = TableVersion::VersionAsOf(ast::Expr::value(mark));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// The moment that is written; a time without a zone is the session's.
pub fn moment_of(binder: &Binder<'_>, version: &TableVersion) -> SqlResult<Moment> {
    // What a view was then may have no table that says so.
    binder.session().note_read_now();
    match version {
        TableVersion::TimestampAsOf(expr) => match value(binder, expr, &SqlType::TimestampTz)? {
            None => Ok(Moment::Newest),
            Some(ScalarValue::TimestampMicrosecond(Some(us), _)) if us != i64::MIN && us != i64::MAX => {
                Ok(Moment::Time(us))
            }
            Some(ScalarValue::TimestampMicrosecond(Some(_), _)) => {
                Err(SqlError::new(Condition::InvalidParameterValue, "AS OF needs a finite timestamp"))
            }
            Some(_) => Err(null()),
        },
        TableVersion::VersionAsOf(expr) => match value(binder, expr, &SqlType::Int8)? {
            None => Ok(Moment::Newest),
            Some(ScalarValue::Int64(Some(number))) => match u64::try_from(number) {
                Ok(commit) => Ok(Moment::Commit(CommitTs(commit))),
                Err(_) => {
                    let message = format!("snapshot number {number} is out of range");
                    Err(SqlError::new(Condition::NumericValueOutOfRange, message))
                }
            },
            Some(_) => Err(null()),
        },
        other => Err(SqlError::unsupported(format_args!("{other}"))),
    }
}

fn null() -> SqlError {
    SqlError::new(Condition::NullValueNotAllowed, "AS OF needs a moment, not NULL")
}

/// The value; `None` where a parameter decides it that has none yet. Its type is noted then.
fn value(binder: &Binder<'_>, written: &ast::Expr, wanted: &SqlType) -> SqlResult<Option<ScalarValue>> {
    let (plan, types) = parameter::settle(binder, binder.parameter_types, |types| {
        expression::one_value(binder, written, wanted, types, PLACE)
    })?;
    binder.note_parameters(&types);
    let values = &binder.context.arguments;
    let plan = if values.is_empty() {
        plan
    } else {
        plan.with_param_values(ParamValues::from(values.to_vec())).map_err(from_datafusion)?
    };
    let LogicalPlan::Projection(projection) = plan else {
        return Err(SqlError::internal("a value's plan is a projection"));
    };
    let expr = projection.expr.into_iter().next().ok_or_else(|| SqlError::internal("a value was lost"))?.unalias();
    if expr.is_volatile() {
        let message = "cannot use a volatile function in AS OF";
        return Err(SqlError::new(Condition::FeatureNotSupported, message)
            .with_hint("now() is the same for the whole transaction."));
    }
    if expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_)))).map_err(from_datafusion)? {
        return Ok(None);
    }
    ScalarValue::try_from_array(&expression::evaluate(binder, expr)?, 0).map(Some).map_err(from_datafusion)
}
