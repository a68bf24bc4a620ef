//! Tells how long the value of a call stays valid, for caches of plans and compiled programs.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ScalarUDF, Volatility};
use session_context::Session;
use types::SqlResult;

use super::cast::CastFunction;
use super::function::ResolvedFunction;
use super::row_constraints::Constrained;

/// Lifetime of an expression's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Settled {
    /// Fixed at planning, until a definition or a setting changes.
    WhenPlanned,
    /// Computed anew by each statement: it depends on the time, randomness or a sequence.
    ByStatement,
}

/// Returns the lifetime of a call's value; `None` for a cast that reads or writes catalog names. Functions of the
/// system catalog are not covered.
#[must_use]
pub fn settled_by(function: &ScalarUDF) -> Option<Settled> {
    let inner = function.inner();
    if let Some(resolved) = inner.downcast_ref::<ResolvedFunction>() {
        return Some(resolved.settled());
    }
    if let Some(cast) = inner.downcast_ref::<CastFunction>() {
        return cast.settled();
    }
    if inner.downcast_ref::<Constrained>().is_some() {
        return Some(Settled::WhenPlanned);
    }
    // A function of DataFusion.
    (function.signature().volatility == Volatility::Immutable).then_some(Settled::WhenPlanned)
}

/// Evaluates a call without arguments, such as `now()`, for a statement of `session`; `None` for any other
/// expression. Nothing is compiled.
#[must_use]
pub fn call_alone(expr: &Expr, session: &Session) -> Option<SqlResult<ScalarValue>> {
    let Expr::ScalarFunction(call) = expr else { return None };
    call.func.inner().downcast_ref::<ResolvedFunction>()?.alone(session)
}
