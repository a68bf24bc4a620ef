//! The rules over a plan, each once, in their order.
//!
//! DataFusion goes over a plan until nothing changes any more, which it knows by hashes of all that is in it, and checks the whole of it before
//! and after. Kiln's list has what is to be done twice twice. A rule goes over plans that have nodes of a kind that it changes, and is
//! shown nodes in which there may be something for it.

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

/// The rule that computes once what a node computes twice.
const ONCE: &str = "common_sub_expression_eliminate";

/// With less of the stack left, a node gets a new piece of it.
const STACK_LEFT_MIN: usize = 128 << 10;
const STACK_PIECE: usize = 2 << 20;

/// A plan after the rules.
pub struct Passed {
    pub plan: LogicalPlan,
    /// Whether there are subqueries in it.
    pub has_subqueries: bool,
}

/// `plan` by `rules`, each once.
///
/// # Errors
/// Those of rules, and `54001` for a plan of too many levels.
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
        return internal_err!("the optimizer made {:?} of {schema:?}", plan.schema());
    }
    Ok(Passed { plan, has_subqueries: kinds.has(Kinds::SUBQUERY) })
}

/// What nodes there are in a plan.
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
    /// A filter that is known to be true or not.
    const DECIDED: Self = Self(1 << 6);
    const JOIN: Self = Self(1 << 7);
    const CONDITIONAL_JOIN: Self = Self(1 << 8);
    const OTHER_THAN_INNER_JOIN: Self = Self(1 << 9);
    const EMPTY: Self = Self(1 << 10);
    /// In an expression.
    const SUBQUERY: Self = Self(1 << 11);
    /// In a FROM.
    const LATERAL: Self = Self(1 << 12);
    const OTHER: Self = Self(1 << 13);

    /// `may_ask` is whether there may be subqueries: no rule makes some where there were none.
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

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one of these is there.
    fn has(self, kinds: Self) -> bool {
        self.0 & kinds.0 != 0
    }
}

/// What a rule of DataFusion's can change; a plan and a node without that it would give back as they are.
struct Gate {
    kinds: Kinds,
    has_work: fn(&LogicalPlan) -> bool,
}

impl Gate {
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

/// Literals in an IN list that DataFusion writes as so many comparisons (`THRESHOLD_INLINE_INLIST` in its simplifier).
const COMPARISONS_MAX: usize = 3;

/// Whether a node has expressions that are more than a column, a literal or a list of literals.
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
        // A list that is too long to become comparisons stays as it is.
        Expr::InList(InList { expr, list, .. }) => {
            COMPARISONS_MAX < list.len()
                && matches!(**expr, Expr::Column(_))
                && list.iter().all(|item| matches!(item, Expr::Literal(..)))
        }
        // Some functions have simpler ones in their place.
        Expr::AggregateFunction(call) => {
            let params = &call.params;
            let has_more = params.filter.is_some() || !params.order_by.is_empty();
            !has_more && params.args.iter().all(is_plain) && call.func.simplify().is_none()
        }
        _ => false,
    }
}

/// Whether rows may be sorted or grouped by something twice.
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

/// One rule's way over a plan.
struct Pass<'a> {
    rule: &'a dyn OptimizerRule,
    has_work: fn(&LogicalPlan) -> bool,
    kinds: Kinds,
    config: &'a dyn OptimizerConfig,
}

impl Pass<'_> {
    /// Applies the rule to the plan; whether that has changed it. After an error nothing is known of the plan.
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

    /// A node and all below it, where they lie.
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

/// What a rule did to a node.
struct Rewritten {
    is_changed: bool,
    /// The rule wants to see no more.
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

/// Calls `recurse` with stack enough, however deep it is already.
pub fn with_stack<T>(recurse: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_LEFT_MIN, STACK_PIECE, recurse)
}

/// Calls `visit` with each input of a node; whether one was changed.
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
