//! Lifetime of expressions' values, and rebinding of expressions to another statement.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{ScalarFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Expr, ScalarUDF, Volatility};
use functions::cast::CastFunction;
use functions::{ResolvedFunction, ValueLifetime, external};
use session_context::EvaluationContext;

/// Returns the lifetime of an expression's value; `None` if it needs more than values of its row: a subquery, an
/// aggregate, catalog names.
#[must_use]
pub fn expression_lifetime(expr: &Expr) -> Option<ValueLifetime> {
    let mut latest = Some(ValueLifetime::Plan);
    let walked = expr.apply(|node| {
        let of_node = match node {
            Expr::Alias(_)
            | Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Placeholder(_)
            | Expr::BinaryExpr(_)
            | Expr::Like(_)
            | Expr::Not(_)
            | Expr::IsNotNull(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Negative(_)
            | Expr::Between(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::InList(_) => Some(ValueLifetime::Plan),
            Expr::ScalarFunction(call) => function_lifetime(&call.func),
            _ => None,
        };
        latest = latest.zip(of_node).map(|(latest, of_node)| latest.max(of_node));
        Ok(if latest.is_some() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.ok()?;
    latest
}

/// Returns the lifetime of a function's value, including functions of the system catalog.
pub(crate) fn function_lifetime(function: &ScalarUDF) -> Option<ValueLifetime> {
    if system_catalog::is_statement_bound(function) {
        Some(ValueLifetime::Statement)
    } else {
        functions::value_lifetime(function)
    }
}

/// Rebinds the functions in `expr` to a statement of `session`.
///
/// # Errors
/// Internal errors only: the expression was planned successfully before.
pub fn rebind_to_session(expr: Expr, session: &Arc<EvaluationContext>) -> Result<Expr> {
    let plain = expr.transform(|node| {
        let Expr::ScalarFunction(call) = node else { return Ok(Transformed::no(node)) };
        let inner = call.func.inner();
        let again = if let Some(resolved) = inner.downcast_ref::<ResolvedFunction>() {
            Some(resolved.with_session(session).map_err(external)?)
        } else if system_catalog::is_statement_bound(&call.func) {
            session.context().and_then(|context| system_catalog::function(call.name(), context))
        } else {
            inner.downcast_ref::<CastFunction>().map(|cast| cast.with_session(session))
        };
        Ok(match again {
            Some(func) => Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: call.args })),
            None => Transformed::no(Expr::ScalarFunction(call)),
        })
    });
    plain.map(|plain| plain.data)
}

/// Returns whether an expression node, regardless of its children, has the same value at any time and for any user.
#[must_use]
pub fn is_fixed_at_planning(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, .. }) => function_lifetime(func) == Some(ValueLifetime::Plan),
        Expr::AggregateFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => {
                function.signature().volatility == Volatility::Immutable
            }
            WindowFunctionDefinition::WindowUDF(function) => function.signature().volatility == Volatility::Immutable,
        },
        Expr::ScalarVariable(..) => false,
        _ => true,
    }
}
