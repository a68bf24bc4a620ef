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
use functions::folding;
use plan::{flatten_chains, levels};
use types::interrupt;

use super::{KEYS_OF_JOINS, SIMPLIFY, repeats};
use crate::subqueries;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Name of the rule that eliminates common subexpressions.
const ONCE: &str = "common_sub_expression_eliminate";

/// Remaining stack, in bytes, below which a recursion continues on a new stack segment.
const STACK_LEFT_MIN: usize = 128 << 10;
/// Size of a new stack segment, in bytes.
const STACK_PIECE: usize = 2 << 20;

/// Plan after the rules.
pub struct Passed {
    pub plan: LogicalPlan,
    /// Whether the plan still has subqueries in expressions.
    pub has_subqueries: bool,
}

/// Runs `rules` over `plan`, each once.
///
/// # Errors
/// Errors of rules, and `54001` for a plan of too many levels.
pub fn passed(plan: LogicalPlan, rules: &[Rule], config: &dyn OptimizerConfig) -> Result<Passed> {
    folding(|| by_each(plan, rules, config))
}

fn by_each(mut plan: LogicalPlan, rules: &[Rule], config: &dyn OptimizerConfig) -> Result<Passed> {
    let schema = Arc::clone(plan.schema());
    let mut kinds = Kinds::of(&plan, true)?;
    if kinds.has(Kinds::SUBQUERY) {
        subqueries::check_all(&plan)?;
    }
    for rule in rules {
        interrupt::check().map_err(to_datafusion)?;
        let gate = Gate::of(rule.name());
        if !kinds.has(gate.kinds) || (rule.name() == ONCE && !repeats::may_repeat(&plan)?) {
            continue;
        }
        let pass = Pass { rule: rule.as_ref(), has_work: gate.has_work, kinds, config };
        let is_changed =
            pass.over(&mut plan).map_err(|error| error.context(format!("Optimizer rule '{}' failed", rule.name())))?;
        if is_changed {
            kinds = Kinds::of(&plan, kinds.has(Kinds::SUBQUERY.and(Kinds::LATERAL)))?;
        }
    }
    levels::check(&plan)?;
    if !plan.schema().logically_equivalent_names_and_types(&schema) {
        return internal_err!("the optimizer changed the plan's schema from {schema:?} to {:?}", plan.schema());
    }
    Ok(Passed { plan, has_subqueries: kinds.has(Kinds::SUBQUERY) })
}

/// Bit set of the kinds of nodes in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kinds(u16);

impl Kinds {
    const ANY: Self = Self(u16::MAX);
    const UNION: Self = Self(1);
    const DISTINCT: Self = Self(1 << 1);
    const LIMIT: Self = Self(1 << 2);
    const SORT: Self = Self(1 << 3);
    const AGGREGATE: Self = Self(1 << 4);
    const FILTER: Self = Self(1 << 5);
    /// A filter whose predicate is a literal.
    const DECIDED: Self = Self(1 << 6);
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
    fn of(plan: &LogicalPlan, may_ask: bool) -> Result<Self> {
        let mut kinds = Self::OTHER;
        if !may_ask {
            plan.apply(|node| {
                kinds = kinds.and(Self::of_node(node));
                Ok(TreeNodeRecursion::Continue)
            })?;
            return Ok(kinds);
        }
        let is_subquery = |node: &LogicalPlan| matches!(node, LogicalPlan::Subquery(_));
        let (mut subqueries, mut laterals) = (0, 0);
        plan.apply_with_subqueries(|node| {
            kinds = kinds.and(Self::of_node(node));
            subqueries += usize::from(is_subquery(node));
            laterals += node.inputs().into_iter().filter(|input| is_subquery(input)).count();
            Ok(TreeNodeRecursion::Continue)
        })?;
        let lateral = if laterals == 0 { Self::OTHER } else { Self::LATERAL };
        let subquery = if subqueries == laterals { Self::OTHER } else { Self::SUBQUERY };
        Ok(kinds.and(lateral).and(subquery))
    }

    fn of_node(node: &LogicalPlan) -> Self {
        match node {
            LogicalPlan::Union(_) => Self::UNION,
            LogicalPlan::Distinct(_) => Self::DISTINCT,
            LogicalPlan::Limit(_) => Self::LIMIT,
            LogicalPlan::Sort(_) => Self::SORT,
            LogicalPlan::Aggregate(_) => Self::AGGREGATE,
            LogicalPlan::Filter(filter) => match filter.predicate {
                Expr::Literal(..) => Self::FILTER.and(Self::DECIDED),
                _ => Self::FILTER,
            },
            LogicalPlan::Join(join) => {
                let conditional = if join.filter.is_some() { Self::CONDITIONAL_JOIN } else { Self::JOIN };
                let other = if join.join_type == JoinType::Inner { Self::JOIN } else { Self::OTHER_THAN_INNER_JOIN };
                Self::JOIN.and(conditional).and(other)
            }
            LogicalPlan::EmptyRelation(_) => Self::EMPTY,
            _ => Self::OTHER,
        }
    }

    /// Returns the union of both sets.
    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the set has one of `kinds`.
    fn has(self, kinds: Self) -> bool {
        self.0 & kinds.0 != 0
    }
}

/// Precondition of a rule; other plans and nodes it would return unchanged.
struct Gate {
    /// Kinds of nodes that a plan must have one of.
    kinds: Kinds,
    /// Condition on a node.
    has_work: fn(&LogicalPlan) -> bool,
}

impl Gate {
    /// Returns the precondition of the rule with this name.
    fn of(rule: &str) -> Self {
        let kinds = match rule {
            "union_names" | "optimize_unions" => Kinds::UNION,
            "replace_distinct_aggregate" => Kinds::DISTINCT,
            "rewrite_set_comparison" | "decorrelate_predicate_subquery" | "scalar_subquery_to_join" => Kinds::SUBQUERY,
            "decorrelate_lateral_join" => Kinds::LATERAL,
            "eliminate_join" | "join_order" => Kinds::JOIN,
            KEYS_OF_JOINS => Kinds::CONDITIONAL_JOIN,
            "eliminate_outer_join" => Kinds::OTHER_THAN_INNER_JOIN,
            "eliminate_duplicated_expr" => Kinds::SORT.and(Kinds::AGGREGATE),
            "eliminate_filter" => Kinds::DECIDED,
            "propagate_empty_relation" => Kinds::EMPTY,
            "eliminate_limit" | "push_down_limit" => Kinds::LIMIT,
            "push_down_filter" => Kinds::FILTER.and(Kinds::JOIN),
            "single_distinct_aggregation_to_group_by" | "eliminate_group_by_constant" => Kinds::AGGREGATE,
            _ => Kinds::ANY,
        };
        let has_work: fn(&LogicalPlan) -> bool = match rule {
            SIMPLIFY => computes,
            "eliminate_duplicated_expr" => may_have_keys_twice,
            _ => |_| true,
        };
        Self { kinds, has_work }
    }
}

/// Largest IN list that DataFusion's simplifier rewrites to comparisons (its `THRESHOLD_INLINE_INLIST`).
const COMPARISONS_MAX: usize = 3;

/// Returns whether a node has an expression that the simplifier may change: anything but columns, literals, lists of
/// literals, and plain aggregates of these.
pub(super) fn computes(node: &LogicalPlan) -> bool {
    let mut computes = false;
    let walked = node.apply_expressions(|expr| {
        computes = computes || !is_plain(expr);
        Ok(if computes { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    computes || walked.is_err()
}

fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(alias) => is_plain(&alias.expr),
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
            !has_more && params.args.iter().all(is_plain) && call.func.simplify().is_none()
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
struct Pass<'a> {
    rule: &'a dyn OptimizerRule,
    has_work: fn(&LogicalPlan) -> bool,
    kinds: Kinds,
    config: &'a dyn OptimizerConfig,
}

impl Pass<'_> {
    /// Applies the rule to the plan; returns whether that changed it. After an error the plan is in an undefined state.
    fn over(mut self, plan: &mut LogicalPlan) -> Result<bool> {
        match self.rule.apply_order() {
            None => {
                let rewritten = self.rule.rewrite(std::mem::take(plan), self.config)?;
                *plan = rewritten.data;
                Ok(rewritten.transformed)
            }
            Some(_) if self.kinds.has(Kinds::SUBQUERY) => {
                let rewritten = std::mem::take(plan).rewrite_with_subqueries(&mut self)?;
                *plan = rewritten.data;
                Ok(rewritten.transformed)
            }
            Some(order) => self.node(plan, order),
        }
    }

    /// Applies the rule to a node and all nodes below it, in place.
    fn node(&self, plan: &mut LogicalPlan, order: ApplyOrder) -> Result<bool> {
        let mut is_changed = false;
        if order == ApplyOrder::TopDown {
            let rewritten = self.rewrite(plan)?;
            is_changed = rewritten.is_changed;
            if rewritten.is_last {
                return Ok(is_changed);
            }
        }
        let mut has_other_columns = false;
        is_changed |= inputs(plan, &mut |input| {
            let before = Arc::clone(input.schema());
            let is_changed = with_stack(|| self.node(input, order))?;
            has_other_columns |= is_changed && before != *input.schema();
            Ok(is_changed)
        })?;
        if has_other_columns {
            *plan = std::mem::take(plan).recompute_schema()?;
        }
        if order == ApplyOrder::BottomUp {
            is_changed |= self.rewrite(plan)?.is_changed;
        }
        Ok(is_changed)
    }

    /// Applies the rule to one node in place.
    fn rewrite(&self, node: &mut LogicalPlan) -> Result<Rewritten> {
        if !(self.has_work)(node) {
            return Ok(Rewritten { is_changed: false, is_last: false });
        }
        interrupt::check().map_err(to_datafusion)?;
        let rewritten = self.rule.rewrite(std::mem::take(node), self.config)?;
        *node = rewritten.data;
        flatten_chains(node);
        Ok(Rewritten { is_changed: rewritten.transformed, is_last: rewritten.tnr == TreeNodeRecursion::Stop })
    }

    /// Applies the rule to one owned node, if `order` is the rule's order.
    fn owned(&self, node: LogicalPlan, order: ApplyOrder) -> Result<Transformed<LogicalPlan>> {
        if self.rule.apply_order() != Some(order) || !(self.has_work)(&node) {
            return Ok(Transformed::no(node));
        }
        interrupt::check().map_err(to_datafusion)?;
        let mut rewritten = self.rule.rewrite(node, self.config)?;
        flatten_chains(&mut rewritten.data);
        Ok(rewritten)
    }
}

/// Result of applying a rule to a node.
struct Rewritten {
    is_changed: bool,
    /// Whether the rule asks to skip the nodes below.
    is_last: bool,
}

impl TreeNodeRewriter for Pass<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.owned(node, ApplyOrder::TopDown)
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.owned(node, ApplyOrder::BottomUp)
    }
}

/// Calls `recurse` with enough stack, on a new stack segment if needed.
pub fn with_stack<T>(recurse: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_LEFT_MIN, STACK_PIECE, recurse)
}

/// Calls `visit` with each input of a node; returns whether any changed.
fn inputs(node: &mut LogicalPlan, visit: &mut impl FnMut(&mut LogicalPlan) -> Result<bool>) -> Result<bool> {
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
