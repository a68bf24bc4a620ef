//! Tells how long the value of a call stays valid, for caches of plans and compiled programs.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ScalarUDF, Volatility};
use session_context::EvaluationContext;
use types::SqlResult;

use super::cast::CastFunction;
use super::row_constraints::ConstraintCheck;
use super::scalar_udf::ResolvedFunction;

/// Lifetime of an expression's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueLifetime {
    /// Fixed at planning, until a definition or a setting changes.
    Plan,
    /// Computed anew by each statement: it depends on the time, randomness or a sequence.
    Statement,
}

/// Returns the lifetime of a call's value; `None` for a cast that reads or writes catalog names. Functions of the
/// system catalog are not covered.
#[must_use]
pub fn value_lifetime(function: &ScalarUDF) -> Option<ValueLifetime> {
    let inner = function.inner();
    if let Some(resolved) = inner.downcast_ref::<ResolvedFunction>() {
        return Some(resolved.value_lifetime());
    }
    if let Some(cast) = inner.downcast_ref::<CastFunction>() {
        return cast.value_lifetime();
    }
    if inner.downcast_ref::<ConstraintCheck>().is_some() {
        return Some(ValueLifetime::Plan);
    }
    // A function of DataFusion.
    (function.signature().volatility == Volatility::Immutable).then_some(ValueLifetime::Plan)
}

/// Evaluates a call without arguments, such as `now()`, for a statement of `session`; `None` for any other
/// expression. Nothing is compiled.
#[must_use]
pub fn evaluate_nullary_call(expr: &Expr, session: &EvaluationContext) -> Option<SqlResult<ScalarValue>> {
    let Expr::ScalarFunction(call) = expr else { return None };
    call.func.inner().downcast_ref::<ResolvedFunction>()?.evaluate_nullary(session)
}
