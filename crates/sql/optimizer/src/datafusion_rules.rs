//! Adapter for DataFusion's logical optimizer: the only place that knows rules by name.
//!
//! A rule behind `dyn OptimizerRule` shows nothing but its name; wrappers have the name of the rule that they wrap. An
//! `OptimizerRule: Any`, as physical rules have it in DataFusion 55, would make the names unnecessary.

use datafusion::optimizer::OptimizerRule;

#[cfg(test)]
mod tests;

/// Rule of the optimizer: one of DataFusion's, or one of the rules that Kiln adds under a name of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RuleKind {
    /// Kiln's: gives the inputs of a UNION the same column names.
    UnionNames,
    /// Kiln's: chooses the order of joins by cost.
    JoinOrder,
    RewriteSetComparison,
    OptimizeUnions,
    UnionsToFilter,
    SimplifyExpressions,
    ReplaceDistinctAggregate,
    EliminateJoin,
    DecorrelatePredicateSubquery,
    ScalarSubqueryToJoin,
    DecorrelateLateralJoin,
    /// Makes join keys of equalities in join conditions, also of filters pushed into a join.
    ExtractEquijoinPredicate,
    EliminateDuplicatedExpr,
    EliminateFilter,
    EliminateCrossJoin,
    EliminateLimit,
    PropagateEmptyRelation,
    FilterNullJoinKeys,
    EliminateOuterJoin,
    PushDownLimit,
    PushDownFilter,
    SingleDistinctToGroupBy,
    EliminateGroupByConstant,
    CommonSubexpressionEliminate,
    ExtractLeafExpressions,
    PushDownLeafProjections,
    OptimizeProjections,
}

impl RuleKind {
    /// All kinds with their names.
    const NAMES: [(Self, &'static str); 27] = [
        (Self::UnionNames, "union_names"),
        (Self::JoinOrder, "join_order"),
        (Self::RewriteSetComparison, "rewrite_set_comparison"),
        (Self::OptimizeUnions, "optimize_unions"),
        (Self::UnionsToFilter, "unions_to_filter"),
        (Self::SimplifyExpressions, "simplify_expressions"),
        (Self::ReplaceDistinctAggregate, "replace_distinct_aggregate"),
        (Self::EliminateJoin, "eliminate_join"),
        (Self::DecorrelatePredicateSubquery, "decorrelate_predicate_subquery"),
        (Self::ScalarSubqueryToJoin, "scalar_subquery_to_join"),
        (Self::DecorrelateLateralJoin, "decorrelate_lateral_join"),
        (Self::ExtractEquijoinPredicate, "extract_equijoin_predicate"),
        (Self::EliminateDuplicatedExpr, "eliminate_duplicated_expr"),
        (Self::EliminateFilter, "eliminate_filter"),
        (Self::EliminateCrossJoin, "eliminate_cross_join"),
        (Self::EliminateLimit, "eliminate_limit"),
        (Self::PropagateEmptyRelation, "propagate_empty_relation"),
        (Self::FilterNullJoinKeys, "filter_null_join_keys"),
        (Self::EliminateOuterJoin, "eliminate_outer_join"),
        (Self::PushDownLimit, "push_down_limit"),
        (Self::PushDownFilter, "push_down_filter"),
        (Self::SingleDistinctToGroupBy, "single_distinct_aggregation_to_group_by"),
        (Self::EliminateGroupByConstant, "eliminate_group_by_constant"),
        (Self::CommonSubexpressionEliminate, "common_sub_expression_eliminate"),
        (Self::ExtractLeafExpressions, "extract_leaf_expressions"),
        (Self::PushDownLeafProjections, "push_down_leaf_projections"),
        (Self::OptimizeProjections, "optimize_projections"),
    ];

    /// Returns the kind of a rule; `None` for a rule that is neither DataFusion's nor Kiln's.
    pub(crate) fn from_rule(rule: &dyn OptimizerRule) -> Option<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == rule.name()).map(|(kind, _)| *kind)
    }

    /// Returns whether a rule is of this kind, wrapped or not.
    pub(crate) fn matches(self, rule: &dyn OptimizerRule) -> bool {
        Self::from_rule(rule) == Some(self)
    }

    /// Returns the name of the rules of this kind.
    pub(crate) fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind == self);
        found.map(|(_, name)| *name).expect("a test holds the list complete")
    }
}
