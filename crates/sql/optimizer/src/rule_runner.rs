//! Runs the optimizer's rules over a plan, each once, in their order.
//!
//! DataFusion repeats all rules until nothing changes, which it detects by hashing the whole plan, and checks the whole
//! plan's invariants before and after. Kiln runs its list of rules once; a rule that has to run twice is in the list
//! twice. A rule runs only over plans that have nodes of a kind that it changes, and only on nodes that it may change.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{JoinType, Result, internal_err};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, Filter, Join, Limit, LogicalPlan, Projection, Sort, SubqueryAlias, Union,
    Window,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use functions::error::to_datafusion;
use functions::with_folding_limit;
use plan::{balance_conditions, plan_limits};
use types::interrupt;

use super::datafusion_rules::RuleKind;
use super::repeated_expressions;
use crate::subquery_checks;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Remaining stack, in bytes, below which a recursion continues on a new stack segment.
const STACK_RED_ZONE: usize = 128 << 10;
/// Size of a new stack segment, in bytes.
const STACK_SEGMENT: usize = 2 << 20;

/// Plan after the rules.
pub struct RewrittenPlan {
    pub plan: LogicalPlan,
    /// Whether the plan still has subqueries in expressions.
    pub has_subqueries: bool,
}

/// Runs `rules` over `plan`, each once.
///
/// # Errors
/// Errors of rules, and `54001` for a plan of too many levels.
pub fn run_rules(plan: LogicalPlan, rules: &[Rule], config: &dyn OptimizerConfig) -> Result<RewrittenPlan> {
    with_folding_limit(|| run_each_rule(plan, rules, config))
}

fn run_each_rule(mut plan: LogicalPlan, rules: &[Rule], config: &dyn OptimizerConfig) -> Result<RewrittenPlan> {
    let schema = Arc::clone(plan.schema());
    let mut kinds = NodeKinds::from_plan(&plan, true)?;
    if kinds.intersects(NodeKinds::SUBQUERY) {
        subquery_checks::check_all(&plan)?;
    }
    for rule in rules {
        interrupt::check().map_err(to_datafusion)?;
        let kind = RuleKind::from_rule(rule.as_ref());
        let gate = RulePrecondition::for_rule(kind);
        if !kinds.intersects(gate.kinds)
            || (kind == Some(RuleKind::CommonSubexpressionEliminate) && !repeated_expressions::may_repeat(&plan)?)
        {
            continue;
        }
        let pass = RuleRun { rule: rule.as_ref(), may_change: gate.may_change, kinds, config };
        let is_changed =
            pass.run(&mut plan).map_err(|error| error.context(format!("Optimizer rule '{}' failed", rule.name())))?;
        if is_changed {
            kinds = NodeKinds::from_plan(&plan, kinds.intersects(NodeKinds::SUBQUERY.union(NodeKinds::LATERAL)))?;
        }
    }
    plan_limits::check(&plan)?;
    if !plan.schema().logically_equivalent_names_and_types(&schema) {
        return internal_err!("the optimizer changed the plan's schema from {schema:?} to {:?}", plan.schema());
    }
    Ok(RewrittenPlan { plan, has_subqueries: kinds.intersects(NodeKinds::SUBQUERY) })
}

/// Bit set of the kinds of nodes in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NodeKinds(u16);

impl NodeKinds {
    const ANY: Self = Self(u16::MAX);
    const UNION: Self = Self(1);
    const DISTINCT: Self = Self(1 << 1);
    const LIMIT: Self = Self(1 << 2);
    const SORT: Self = Self(1 << 3);
    const AGGREGATE: Self = Self(1 << 4);
    const FILTER: Self = Self(1 << 5);
    /// A filter whose predicate is a literal.
    const LITERAL_FILTER: Self = Self(1 << 6);
    const JOIN: Self = Self(1 << 7);
    const CONDITIONAL_JOIN: Self = Self(1 << 8);
    const OTHER_THAN_INNER_JOIN: Self = Self(1 << 9);
    const EMPTY: Self = Self(1 << 10);
    /// A subquery in an expression.
    const SUBQUERY: Self = Self(1 << 11);
    /// A subquery in FROM.
    const LATERAL: Self = Self(1 << 12);
    const OTHER: Self = Self(1 << 13);

    /// Returns the kinds of nodes in a plan. `may_ask` says whether there may be subqueries; no rule adds any to a plan
    /// without.
    fn from_plan(plan: &LogicalPlan, may_have_subqueries: bool) -> Result<Self> {
        let mut kinds = Self::OTHER;
        if !may_have_subqueries {
            plan.apply(|node| {
                kinds = kinds.union(Self::from_node(node));
                Ok(TreeNodeRecursion::Continue)
            })?;
            return Ok(kinds);
        }
        let is_subquery = |node: &LogicalPlan| matches!(node, LogicalPlan::Subquery(_));
        let (mut subqueries, mut laterals) = (0, 0);
        plan.apply_with_subqueries(|node| {
            kinds = kinds.union(Self::from_node(node));
            subqueries += usize::from(is_subquery(node));
            laterals += node.inputs().into_iter().filter(|input| is_subquery(input)).count();
            Ok(TreeNodeRecursion::Continue)
        })?;
        let lateral = if laterals == 0 { Self::OTHER } else { Self::LATERAL };
        let subquery = if subqueries == laterals { Self::OTHER } else { Self::SUBQUERY };
        Ok(kinds.union(lateral).union(subquery))
    }

    fn from_node(node: &LogicalPlan) -> Self {
        match node {
            LogicalPlan::Union(_) => Self::UNION,
            LogicalPlan::Distinct(_) => Self::DISTINCT,
            LogicalPlan::Limit(_) => Self::LIMIT,
            LogicalPlan::Sort(_) => Self::SORT,
            LogicalPlan::Aggregate(_) => Self::AGGREGATE,
            LogicalPlan::Filter(filter) => match filter.predicate {
                Expr::Literal(..) => Self::FILTER.union(Self::LITERAL_FILTER),
                _ => Self::FILTER,
            },
            LogicalPlan::Join(join) => {
                let conditional = if join.filter.is_some() { Self::CONDITIONAL_JOIN } else { Self::JOIN };
                let other = if join.join_type == JoinType::Inner { Self::JOIN } else { Self::OTHER_THAN_INNER_JOIN };
                Self::JOIN.union(conditional).union(other)
            }
            LogicalPlan::EmptyRelation(_) => Self::EMPTY,
            _ => Self::OTHER,
        }
    }

    /// Returns the union of both sets.
    const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the set has one of `kinds`.
    fn intersects(self, kinds: Self) -> bool {
        self.0 & kinds.0 != 0
    }
}

/// Precondition of a rule; other plans and nodes it would return unchanged.
struct RulePrecondition {
    /// Kinds of nodes that a plan must have one of.
    kinds: NodeKinds,
    /// Condition on a node.
    may_change: fn(&LogicalPlan) -> bool,
}

impl RulePrecondition {
    /// Returns the precondition of the rules of a kind; none for an unknown rule.
    fn for_rule(kind: Option<RuleKind>) -> Self {
        use RuleKind as R;
        let any: fn(&LogicalPlan) -> bool = |_| true;
        let Some(kind) = kind else { return Self { kinds: NodeKinds::ANY, may_change: any } };
        let kinds = match kind {
            R::UnionNames | R::OptimizeUnions => NodeKinds::UNION,
            R::ReplaceDistinctAggregate => NodeKinds::DISTINCT,
            R::RewriteSetComparison | R::DecorrelatePredicateSubquery | R::ScalarSubqueryToJoin => NodeKinds::SUBQUERY,
            R::DecorrelateLateralJoin => NodeKinds::LATERAL,
            R::EliminateJoin | R::JoinOrder => NodeKinds::JOIN,
            R::ExtractEquijoinPredicate => NodeKinds::CONDITIONAL_JOIN,
            R::EliminateOuterJoin => NodeKinds::OTHER_THAN_INNER_JOIN,
            R::EliminateDuplicatedExpr => NodeKinds::SORT.union(NodeKinds::AGGREGATE),
            R::EliminateFilter => NodeKinds::LITERAL_FILTER,
            R::PropagateEmptyRelation => NodeKinds::EMPTY,
            R::EliminateLimit | R::PushDownLimit => NodeKinds::LIMIT,
            R::PushDownFilter => NodeKinds::FILTER.union(NodeKinds::JOIN),
            R::SingleDistinctToGroupBy | R::EliminateGroupByConstant => NodeKinds::AGGREGATE,
            R::SimplifyExpressions
            | R::CommonSubexpressionEliminate
            | R::OptimizeProjections
            | R::UnionsToFilter
            | R::EliminateCrossJoin
            | R::FilterNullJoinKeys
            | R::ExtractLeafExpressions
            | R::PushDownLeafProjections => NodeKinds::ANY,
        };
        let may_change: fn(&LogicalPlan) -> bool = match kind {
            R::SimplifyExpressions => may_simplify,
            R::EliminateDuplicatedExpr => may_have_keys_twice,
            _ => any,
        };
        Self { kinds, may_change }
    }
}

/// Largest IN list that DataFusion's simplifier rewrites to comparisons (its `THRESHOLD_INLINE_INLIST`).
const COMPARISONS_MAX: usize = 3;

/// Returns whether a node has an expression that the simplifier may change: anything but columns, literals, lists of
/// literals, and plain aggregates of these.
pub(super) fn may_simplify(node: &LogicalPlan) -> bool {
    let mut computes = false;
    let walked = node.apply_expressions(|expr| {
        computes = computes || !is_simplified(expr);
        Ok(if computes { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    computes || walked.is_err()
}

fn is_simplified(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(alias) => is_simplified(&alias.expr),
        // The simplifier leaves lists alone that are too long to become comparisons.
        Expr::InList(InList { expr, list, .. }) => {
            COMPARISONS_MAX < list.len()
                && matches!(**expr, Expr::Column(_))
                && list.iter().all(|item| matches!(item, Expr::Literal(..)))
        }
        // Some aggregate functions have rewrites of their own.
        Expr::AggregateFunction(call) => {
            let params = &call.params;
            let has_more = params.filter.is_some() || !params.order_by.is_empty();
            !has_more && params.args.iter().all(is_simplified) && call.func.simplify().is_none()
        }
        _ => false,
    }
}

/// Returns whether a node may have duplicate sort or group keys.
fn may_have_keys_twice(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => {
            let mut seen = HashSet::with_capacity(group_expr.len());
            !group_expr.iter().all(|key| seen.insert(key))
        }
        _ => false,
    }
}

/// Run of one rule over a plan.
struct RuleRun<'a> {
    rule: &'a dyn OptimizerRule,
    may_change: fn(&LogicalPlan) -> bool,
    kinds: NodeKinds,
    config: &'a dyn OptimizerConfig,
}

impl RuleRun<'_> {
    /// Applies the rule to the plan; returns whether that changed it. After an error the plan is in an undefined state.
    fn run(mut self, plan: &mut LogicalPlan) -> Result<bool> {
        match self.rule.apply_order() {
            None => {
                let rewritten = self.rule.rewrite(std::mem::take(plan), self.config)?;
                *plan = rewritten.data;
                Ok(rewritten.transformed)
            }
            Some(_) if self.kinds.intersects(NodeKinds::SUBQUERY) => {
                let rewritten = std::mem::take(plan).rewrite_with_subqueries(&mut self)?;
                *plan = rewritten.data;
                Ok(rewritten.transformed)
            }
            Some(order) => self.rewrite_tree(plan, order),
        }
    }

    /// Applies the rule to a node and all nodes below it, in place.
    fn rewrite_tree(&self, plan: &mut LogicalPlan, order: ApplyOrder) -> Result<bool> {
        let mut is_changed = false;
        if order == ApplyOrder::TopDown {
            let rewritten = self.rewrite_node(plan)?;
            is_changed = rewritten.is_changed;
            if rewritten.skips_below {
                return Ok(is_changed);
            }
        }
        let mut has_other_columns = false;
        is_changed |= visit_inputs(plan, &mut |input| {
            let before = Arc::clone(input.schema());
            let is_changed = with_stack(|| self.rewrite_tree(input, order))?;
            has_other_columns |= is_changed && before != *input.schema();
            Ok(is_changed)
        })?;
        if has_other_columns {
            *plan = std::mem::take(plan).recompute_schema()?;
        }
        if order == ApplyOrder::BottomUp {
            is_changed |= self.rewrite_node(plan)?.is_changed;
        }
        Ok(is_changed)
    }

    /// Applies the rule to one node in place.
    fn rewrite_node(&self, node: &mut LogicalPlan) -> Result<RewriteResult> {
        if !(self.may_change)(node) {
            return Ok(RewriteResult { is_changed: false, skips_below: false });
        }
        interrupt::check().map_err(to_datafusion)?;
        let rewritten = self.rule.rewrite(std::mem::take(node), self.config)?;
        *node = rewritten.data;
        balance_conditions(node);
        Ok(RewriteResult { is_changed: rewritten.transformed, skips_below: rewritten.tnr == TreeNodeRecursion::Stop })
    }

    /// Applies the rule to one owned node, if `order` is the rule's order.
    fn rewrite_owned(&self, node: LogicalPlan, order: ApplyOrder) -> Result<Transformed<LogicalPlan>> {
        if self.rule.apply_order() != Some(order) || !(self.may_change)(&node) {
            return Ok(Transformed::no(node));
        }
        interrupt::check().map_err(to_datafusion)?;
        let mut rewritten = self.rule.rewrite(node, self.config)?;
        balance_conditions(&mut rewritten.data);
        Ok(rewritten)
    }
}

/// Result of applying a rule to a node.
struct RewriteResult {
    is_changed: bool,
    /// Whether the rule asks to skip the nodes below.
    skips_below: bool,
}

impl TreeNodeRewriter for RuleRun<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.rewrite_owned(node, ApplyOrder::TopDown)
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.rewrite_owned(node, ApplyOrder::BottomUp)
    }
}

/// Calls `recurse` with enough stack, on a new stack segment if needed.
pub fn with_stack<T>(recurse: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_RED_ZONE, STACK_SEGMENT, recurse)
}

/// Calls `visit` with each input of a node; returns whether any changed.
fn visit_inputs(node: &mut LogicalPlan, visit: &mut impl FnMut(&mut LogicalPlan) -> Result<bool>) -> Result<bool> {
    match node {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::Filter(Filter { input, .. })
        | LogicalPlan::Aggregate(Aggregate { input, .. })
        | LogicalPlan::Window(Window { input, .. })
        | LogicalPlan::Sort(Sort { input, .. })
        | LogicalPlan::Limit(Limit { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Distinct(Distinct::All(input) | Distinct::On(DistinctOn { input, .. })) => {
            visit(Arc::make_mut(input))
        }
        LogicalPlan::Join(Join { left, right, .. }) => {
            let is_changed = visit(Arc::make_mut(left))?;
            Ok(visit(Arc::make_mut(right))? || is_changed)
        }
        LogicalPlan::Union(Union { inputs, .. }) => {
            let mut is_changed = false;
            for input in inputs {
                is_changed |= visit(Arc::make_mut(input))?;
            }
            Ok(is_changed)
        }
        LogicalPlan::TableScan(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => Ok(false),
        other => {
            let rewritten = std::mem::take(other).map_children(|mut input| {
                let is_changed = visit(&mut input)?;
                Ok(Transformed::new_transformed(input, is_changed))
            })?;
            *other = rewritten.data;
            Ok(rewritten.transformed)
        }
    }
}
