//! Correlated subqueries that cannot be decorrelated: they are evaluated once per distinct combination of outer values.
//!
//! DataFusion turns a subquery into a join, or refuses it. It refuses LIMIT in a correlated subquery, rows instead of
//! an aggregate, EXISTS and IN outside WHERE, and references across two levels. Such a subquery becomes a call of a
//! function over its outer columns ([`CorrelatedSubquery`]), which runs the subquery's plan as PostgreSQL runs a
//! SubPlan. Subqueries that DataFusion can decorrelate stay subqueries until it does.
//!
//! In reading order:
//!
//! - `replace_by_calls.rs` decides which subqueries cannot become joins, and replaces them by calls,
//! - `three_valued_in.rs` handles IN where NULL and false must be told apart,
//! - `lateral.rs` replaces LATERAL subqueries in FROM by lists of their rows, which are unnested,
//! - `subquery_function.rs` is the function that is called, `array_subquery.rs` the marker for `ARRAY(subquery)`,
//! - `outer_parameter.rs` finds the outer columns of a subquery's plan and replaces them by parameters,
//! - `lift_calls.rs` moves the calls out of operators' expressions once the optimizer is done, into the node of
//!   `sub_plan.rs`.

mod array_subquery;
mod lateral;
mod lift_calls;
mod outer_parameter;
mod replace_by_calls;
mod sub_plan;
mod subquery_function;
mod three_valued_in;

use std::sync::Arc;

pub use self::array_subquery::{ARRAY_SUBQUERY, array_subquery};
pub use self::lift_calls::lift;
pub use self::outer_parameter::{OuterValues, parameterize};
pub use self::sub_plan::SubPlan;
pub use self::subquery_function::{CorrelatedSubquery, SubqueryKind};
use datafusion::common::Result as DfResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use tokio_util::sync::CancellationToken;

/// Analyzer rule that replaces correlated subqueries without a join form by calls. It runs after type coercion, when
/// the statement's parameters have values.
#[derive(Debug)]
pub struct CorrelatedSubqueryRule {
    context: SubqueryContext,
}

/// Session state and cancellation token that subqueries run with.
#[derive(Debug, Clone)]
pub struct SubqueryContext {
    pub state: Arc<SessionState>,
    /// Cancels running subqueries.
    pub cancellation: CancellationToken,
}

impl CorrelatedSubqueryRule {
    /// Creates the rule. Subqueries are planned and run in `state`, which is the statement's without this rule, until
    /// `stop` fires.
    #[must_use]
    pub fn new(state: Arc<SessionState>, stop: CancellationToken) -> Self {
        Self { context: SubqueryContext { state, cancellation: stop } }
    }
}

/// Returns whether an expression is a call of a [`CorrelatedSubquery`], whose plan a walk over the enclosing plan does not
/// visit.
pub(crate) fn is_correlated_call(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(ScalarFunction { func, .. }) if func.inner().is::<CorrelatedSubquery>())
}

/// Returns whether a plan has subqueries, in expressions or (LATERAL) as inputs.
fn has_subqueries(plan: &LogicalPlan) -> DfResult<bool> {
    plan.exists(|node| {
        let mut found = matches!(node, LogicalPlan::Subquery(_));
        node.apply_expressions(|expr| {
            found = found || expr.exists(|part| Ok(is_subquery(part)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(found)
    })
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}

impl AnalyzerRule for CorrelatedSubqueryRule {
    fn name(&self) -> &str {
        "dependent_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        // Most plans have none, and a rewrite rebuilds the whole plan.
        if has_subqueries(&plan)? { replace_by_calls::lower_plan(plan, &self.context) } else { Ok(plan) }
    }
}
