//! PostgreSQL's semantics for what DataFusion parses and plans: rewrites of the syntax tree before planning, and
//! analyzer rules for the plan after it.
//!
//! [`rewrite_query`] rewrites syntax that DataFusion interprets differently, or rejects it; [`expr_planners`] turn
//! operators into Kiln's functions; [`analyzer_rules`] resolve types, overloads and casts. Start at
//! `type_resolution.rs`.
//!
//! - types: `type_resolution.rs`, `expr_type.rs` (type of an expression), `compare.rs` and `compare_number.rs`
//!   (comparisons), `set_operation.rs`, `with_recursive.rs`,
//! - calls: `aggregate.rs`, `window.rs`, `common_type_call.rs`, `coalesce.rs`, `nullif.rs`, `any_equal.rs`,
//!   `lazy_evaluation.rs` (lazy evaluation), `constant_folding.rs`, `duplication_limit.rs` (limit on duplication),
//! - plan nodes: `comparison_keys.rs` (GROUP BY and DISTINCT), `grouping_set.rs`, `unnest.rs`, `streamed_series.rs`,
//!   `scalar_subquery_nullability.rs` (scalar subqueries),
//! - DataFusion: `rewrite/` (syntax), `expr_planner.rs` (operators), `coercion.rs` and `conditional_rule.rs` (its
//!   analyzer rules).

mod aggregate;
mod any_equal;
mod coalesce;
mod coercion;
mod common_type_call;
mod compare;
mod compare_number;
mod comparison_keys;
mod conditional_rule;
mod constant_folding;
mod duplication_limit;
mod expr_planner;
pub(crate) mod expr_type;
mod grouping_set;
mod lazy_evaluation;
mod nullif;
mod rewrite;
mod scalar_subquery_nullability;
mod set_operation;
mod streamed_series;
mod type_resolution;
mod unnest;
mod window;
mod with_recursive;

use std::sync::Arc;

use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use session_context::EvaluationContext;

use self::coercion::LimitedTypeCoercion;
use self::conditional_rule::ConditionalRule;
use self::grouping_set::GroupingSetColumns;
pub(crate) use self::rewrite::function_call;
pub(crate) use self::rewrite::{rewrite_expr, rewrite_query};
use self::streamed_series::StreamedSeries;
use self::type_resolution::TypeResolution;
pub(crate) use self::type_resolution::with_type_metadata;

/// Returns all analyzer rules in order: type resolution, then DataFusion's rules, which find everything already
/// typed.
#[must_use]
pub(crate) fn analyzer_rules(session: &Arc<EvaluationContext>) -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![
        Arc::new(TypeResolution::new(Arc::clone(session))),
        ConditionalRule::grouping_calls(Arc::new(ResolveGroupingFunction::new())),
        Arc::new(LimitedTypeCoercion),
        ConditionalRule::grouping_sets(Arc::new(GroupingSetColumns)),
        ConditionalRule::unnested_lists(Arc::new(StreamedSeries { session: Arc::clone(session) })),
    ]
}

/// Returns the planners of operators and special syntax, which precede any other.
#[must_use]
pub(crate) fn expr_planners(session: &Arc<EvaluationContext>) -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(expr_planner::PostgresOperators { session: Arc::clone(session) })]
}
