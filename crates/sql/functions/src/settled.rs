//! When a function gives what it will give: what is kept and evaluated again for another statement has to know.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ScalarUDF, Volatility};
use session_context::Session;
use types::SqlResult;

use super::cast::CastFunction;
use super::function::ResolvedFunction;
use super::row_constraints::Constrained;

/// When the meaning of an expression is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Settled {
    /// When it is planned, until a definition or a setting changes.
    WhenPlanned,
    /// By each statement anew: it tells the time, takes its chance, or the next number of a sequence.
    ByStatement,
}

/// The moment when the meaning of a call is settled, but for the functions of the system catalog; `None` for one that needs names of the catalog.
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
    // One of DataFusion's.
    (function.signature().volatility == Volatility::Immutable).then_some(Settled::WhenPlanned)
}

/// The value of a call without arguments, such as `now()`, for a statement of `session`; `None` for any other expression. Nothing is compiled.
#[must_use]
pub fn call_alone(expr: &Expr, session: &Session) -> Option<SqlResult<ScalarValue>> {
    let Expr::ScalarFunction(call) = expr else { return None };
    call.func.inner().downcast_ref::<ResolvedFunction>()?.alone(session)
}
