//! Evaluation of AS OF clauses (time travel).
//!
//! The target is evaluated before the statement is planned, because names are resolved as of then. If it depends on a
//! parameter without a value, the statement is first planned on the current snapshot, and again once the parameter
//! has a value.

use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{self, Query, TableFactor, TableVersion, VisitorMut};
use functions::error::from_datafusion;
use syntax::Walk;
use types::{CommitTs, Condition, SqlError, SqlResult, SqlType, TimeTravelTarget};

use super::relation_source::RelationSource;
use super::{Binder, parameter_types, standalone_expression};

const AS_OF_CLAUSE: &str = "AS OF";

/// Replaces every AS OF clause of the query by its evaluated target.
pub(super) fn evaluate_as_of_clauses(binder: &Binder<'_>, query: &mut Query) -> SqlResult<()> {
    match query.walk_mut(&mut AsOfEvaluator(binder)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct AsOfEvaluator<'b, 'a>(&'b Binder<'a>);

impl VisitorMut for AsOfEvaluator<'_, '_> {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        let TableFactor::Table { version: Some(version), .. } = factor else { return ControlFlow::Continue(()) };
        match time_travel_target(self.0, version) {
            Ok(moment) => {
                *version = self.0.relation_sources.refer_to(RelationSource::Snapshot(moment));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// Evaluates an AS OF clause; a timestamp without a time zone is in the session's zone.
pub fn time_travel_target(binder: &Binder<'_>, version: &TableVersion) -> SqlResult<TimeTravelTarget> {
    // The plan depends on time: a view at that snapshot may read no table that shows it.
    binder.session().mark_time_dependent();
    match version {
        TableVersion::TimestampAsOf(expr) => match evaluate_target(binder, expr, &SqlType::TimestampTz)? {
            None => Ok(TimeTravelTarget::Newest),
            Some(ScalarValue::TimestampMicrosecond(Some(us), _)) if us != i64::MIN && us != i64::MAX => {
                Ok(TimeTravelTarget::Time(us))
            }
            Some(ScalarValue::TimestampMicrosecond(Some(_), _)) => {
                Err(SqlError::new(Condition::InvalidParameterValue, "AS OF needs a finite timestamp"))
            }
            Some(_) => Err(null_target_error()),
        },
        TableVersion::VersionAsOf(expr) => match evaluate_target(binder, expr, &SqlType::Int8)? {
            None => Ok(TimeTravelTarget::Newest),
            Some(ScalarValue::Int64(Some(number))) => match u64::try_from(number) {
                Ok(commit) => Ok(TimeTravelTarget::Commit(CommitTs(commit))),
                Err(_) => {
                    let message = format!("snapshot number {number} is out of range");
                    Err(SqlError::new(Condition::NumericValueOutOfRange, message))
                }
            },
            Some(_) => Err(null_target_error()),
        },
        other => Err(SqlError::unsupported(format_args!("{other}"))),
    }
}

fn null_target_error() -> SqlError {
    SqlError::new(Condition::NullValueNotAllowed, "AS OF needs a timestamp or a snapshot number, not NULL")
}

/// Evaluates an expression; `None` if it depends on a parameter without a value, whose type is then recorded.
fn evaluate_target(binder: &Binder<'_>, written: &ast::Expr, wanted: &SqlType) -> SqlResult<Option<ScalarValue>> {
    let (plan, types) = parameter_types::infer_types(binder, binder.parameter_types, |types| {
        standalone_expression::plan_single_value(binder, written, wanted, types, AS_OF_CLAUSE)
    })?;
    binder.record_parameter_types(&types);
    let values = &binder.context.arguments;
    let plan = if values.is_empty() {
        plan
    } else {
        plan.with_param_values(ParamValues::from(values.to_vec())).map_err(from_datafusion)?
    };
    let LogicalPlan::Projection(projection) = plan else {
        return Err(SqlError::internal("plan of an AS OF value is not a projection"));
    };
    let expr = projection.expr.into_iter().next().ok_or_else(|| SqlError::internal("AS OF plan is empty"))?.unalias();
    if expr.is_volatile() {
        let message = "cannot use a volatile function in AS OF";
        return Err(SqlError::new(Condition::FeatureNotSupported, message)
            .with_hint("now() is the same for the whole transaction."));
    }
    if expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_)))).map_err(from_datafusion)? {
        return Ok(None);
    }
    ScalarValue::try_from_array(&standalone_expression::evaluate(binder, expr)?, 0).map(Some).map_err(from_datafusion)
}
