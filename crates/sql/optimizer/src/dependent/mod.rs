//! Correlated subqueries that have no join form: evaluated for each distinct combination of the outer values they use.
//!
//! DataFusion turns a subquery into a join, or refuses it. What it refuses — LIMIT in a correlated subquery, rows instead of
//! an aggregate, EXISTS and IN outside WHERE, references across two levels — becomes here a call of a function over the
//! outer columns, which runs the subquery's plan as PostgreSQL runs a SubPlan. Subqueries that have a join form keep it.
//! LATERAL subqueries in FROM become lists of their rows in the same way (`lateral.rs`).
//!
//! Once the optimizer is done, `lift.rs` takes the calls out of operators' expressions: a node of its own (`node.rs`) computes them.

mod array;
mod evaluate;
mod lateral;
mod lift;
mod lower;
mod membership;
mod node;
mod parameter;

use std::sync::Arc;

pub use self::array::{ARRAY_SUBQUERY, array_subquery};
pub use self::evaluate::{Dependent, Question};
pub use self::lift::lift;
pub use self::node::SubPlan;
pub use self::parameter::{Slots, parameterize};
use datafusion::common::Result as DfResult;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use tokio_util::sync::CancellationToken;

/// The rule that finds such subqueries and replaces them. It runs when all types are settled and parameters have values.
#[derive(Debug)]
pub struct DependentSubqueries {
    within: Surroundings,
}

/// The session state and the stop token that subqueries run with.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub state: Arc<SessionState>,
    /// They end when it fires.
    pub stop: CancellationToken,
}

impl DependentSubqueries {
    /// A rule whose subqueries run in `state`, the statement's own without this rule, until `stop` fires.
    #[must_use]
    pub fn new(state: Arc<SessionState>, stop: CancellationToken) -> Self {
        Self { within: Surroundings { state, stop } }
    }
}

/// Whether an expression calls what such a subquery has become: it has its plan in it, out of sight.
pub(crate) fn is_dependent(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(ScalarFunction { func, .. }) if func.inner().is::<Dependent>())
}

/// Whether there are subqueries in a plan, in expressions or beside what they read.
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

impl AnalyzerRule for DependentSubqueries {
    fn name(&self) -> &str {
        "dependent_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        // Most plans have none, and to go over a plan is to take it apart.
        if has_subqueries(&plan)? { lower::plan(plan, &self.within) } else { Ok(plan) }
    }
}
