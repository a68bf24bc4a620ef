//! Semi-join reduction for queries on several workers: the join keys of a small side are computed before the rest of
//! the query runs, and filter the other side early.
//!
//! The filter reaches below aggregates and exchanges, which the runtime filters of a running join do not. The caller
//! asks [`OptimizedPlan::next_semi_join_reduction`] for a plan of keys, runs it, and passes the keys to
//! [`OptimizedPlan::with_key_filter`]. Such a plan has no aggregates, limits or volatile functions, because the same
//! side runs again in the query itself and must give the same keys.
//!
//! Source: Bernstein and Chiu, "Using Semi-Joins to Solve Relational Queries", 1981.

mod key_propagation;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema as _, JoinType, NullEquality, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder};
use functions::{HasKey, KEYS_MAX, KeySet};

use self::key_propagation::{FilteredSide, ParentJoin, Side, for_each_join, may_filter, propagate_keys};
use crate::common_subplans::{OptimizedPlan, apply_rules};
use crate::datafusion_rules::RuleKind;
use crate::{estimate_relation, is_distribution_key, semi_join_selectivity};

/// Limit of semi-join reductions for one query.
const REDUCTIONS_MAX: usize = 6;
/// Largest cost of a reduction: rows read for the keys as a share of the rows that the reduced side reads.
const COST_SHARE_MAX: f64 = 0.5;
/// Largest selectivity of a reduction: share of the reduced side's rows that remain.
const SELECTIVITY_MAX: f64 = 0.3;

/// Semi-join reductions chosen so far for one query, and the properties of its cluster that the choice depends on.
#[derive(Debug)]
pub struct ReductionState {
    workers: usize,
    /// Least number of rows that a side must read to be reduced.
    rows_min: f64,
    /// Names of the reductions chosen so far.
    chosen_names: HashSet<String>,
}

impl ReductionState {
    /// Creates the state for a query that runs on `workers` workers. Sides of joins that read fewer than `rows_min`
    /// rows are not reduced.
    #[must_use]
    pub fn new(workers: usize, rows_min: f64) -> Self {
        Self { workers, rows_min, chosen_names: HashSet::new() }
    }
}

/// Semi-join reduction: a plan of keys and the join sides that they filter.
#[derive(Debug)]
pub struct SemiJoinReduction {
    /// Plan of the keys, in one column.
    plan: LogicalPlan,
    /// Join sides that the keys filter.
    targets: Vec<FilteredSide>,
}

impl SemiJoinReduction {
    /// Returns the optimized plan of the keys: one column of [`KeySet::values`], which may have NULLs and duplicates.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn optimize(&self, state: &SessionState) -> Result<OptimizedPlan> {
        Ok(OptimizedPlan { plan: apply_rules(self.plan.clone(), state)?, shared: Vec::new() })
    }
}

impl OptimizedPlan {
    /// Chooses the worthwhile reduction that reads the fewest rows, and records it in `asked`; `None` if there is no
    /// more. The cheapest comes first because its filter may make others unnecessary.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn next_semi_join_reduction(&self, asked: &mut ReductionState) -> Result<Option<SemiJoinReduction>> {
        if REDUCTIONS_MAX <= asked.chosen_names.len() {
            return Ok(None);
        }
        let mut least: Option<Candidate> = None;
        for_each_join(&self.plan, &mut |join, number, above| {
            let candidate = find_reduction(join, number, above, asked)?;
            let is_less = |it: &Candidate| least.as_ref().is_none_or(|least| it.rows_read < least.rows_read);
            if let Some(candidate) = candidate.filter(is_less) {
                least = Some(candidate);
            }
            Ok(())
        })?;
        Ok(least.map(|Candidate { name, reduction: question, .. }| {
            asked.chosen_names.insert(name);
            question
        }))
    }

    /// Adds filters on `keys` to the plan, pushed down as far as possible.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn with_key_filter(self, question: &SemiJoinReduction, keys: KeySet, state: &SessionState) -> Result<Self> {
        let has_key = HasKey::udf(keys);
        let mut number = 0;
        let plan = self.plan.transform_down(|node| {
            let LogicalPlan::Join(mut join) = node else { return Ok(Transformed::no(node)) };
            let targets: Vec<_> = question.targets.iter().filter(|target| target.join == number).collect();
            number += 1;
            for target in &targets {
                let side = match target.side {
                    Side::Left => &mut join.left,
                    Side::Right => &mut join.right,
                };
                let has_key = has_key.call(vec![Expr::Column(target.column.clone())]);
                *side = Arc::new(LogicalPlan::Filter(Filter::try_new(has_key, Arc::clone(side))?));
            }
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), !targets.is_empty()))
        })?;
        let down: Vec<_> = state
            .optimizer()
            .rules
            .iter()
            .filter(|rule| RuleKind::PushDownFilter.matches(rule.as_ref()))
            .cloned()
            .collect();
        Ok(Self { plan: crate::run_rules(plan.data, &down, state)?.plan, shared: self.shared })
    }
}

/// Possible semi-join reduction.
struct Candidate {
    /// Name that identifies the reduction within the query.
    name: String,
    /// Estimated rows that computing the keys reads.
    rows_read: f64,
    reduction: SemiJoinReduction,
}

/// Returns the most selective reduction from one side of a join, if one is worthwhile and not chosen yet. `above` are
/// the joins that read this join's rows.
fn find_reduction(
    join: &Join,
    number: usize,
    above: &[ParentJoin<'_>],
    asked: &ReductionState,
) -> Result<Option<Candidate>> {
    // NOT IN depends on NULLs, which a set of keys does not hold.
    if join.null_equality != NullEquality::NullEqualsNothing || join.null_aware {
        return Ok(None);
    }
    for side in [Side::Left, Side::Right] {
        if !may_filter(join.join_type, side) {
            continue;
        }
        let from = side.opposite().input(join);
        // Estimate each side only once, however large its plan is.
        let facts = estimate_relation(from);
        if KEYS_MAX as f64 <= facts.rows || !is_repeatable(from)? {
            continue;
        }
        let mut best: Option<(f64, &Column, Vec<FilteredSide>)> = None;
        for (column, key) in side
            .key_pairs(join)
            .filter(|(column, key)| can_hold_keys(side.input(join), column) && can_hold_keys(from, key))
        {
            let own = (FilteredSide { join: number, side, column: column.clone() }, join);
            let reached = std::iter::once(own).chain(propagate_keys([key, column], above));
            let known = facts.expression_estimate(&Expr::Column(key.clone()), from.schema());
            let share = |(target, join): &(FilteredSide, &Join)| {
                let to = target.side.input(join);
                let found =
                    estimate_relation(to).expression_estimate(&Expr::Column(target.column.clone()), to.schema());
                semi_join_selectivity(&[found], std::slice::from_ref(&known))
            };
            let worth: Vec<_> = reached.filter(|(target, join)| is_worthwhile(join, target, from, asked)).collect();
            let Some(least) = worth.iter().map(share).min_by(f64::total_cmp) else { continue };
            if least <= SELECTIVITY_MAX && best.as_ref().is_none_or(|(share, ..)| least < *share) {
                let few = worth.into_iter().filter(|it| share(it) <= SELECTIVITY_MAX);
                best = Some((least, key, few.map(|(target, _)| target).collect()));
            }
        }
        let Some((_, key, targets)) = best else { continue };
        let name = format!("{side:?} {key} = {}", targets[0].column);
        if asked.chosen_names.contains(&name) {
            continue;
        }
        let plan = LogicalPlanBuilder::from(from.clone()).project([Expr::Column(key.clone())])?.build()?;
        let question = SemiJoinReduction { plan, targets };
        return Ok(Some(Candidate { name, rows_read: scanned_rows(from), reduction: question }));
    }
    Ok(None)
}

/// Returns whether a set of keys can hold a column's type.
fn can_hold_keys(plan: &LogicalPlan, column: &Column) -> bool {
    plan.schema().field_from_column(column).is_ok_and(|field| KeySet::supports_type(field.data_type()))
}

/// Returns whether every run of a plan gives the same rows. Aggregates do not qualify (sums of floats depend on the
/// order of rows), and neither do limits.
fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
    let mut is_repeatable = true;
    plan.apply(|node| {
        is_repeatable &= match node {
            LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_) => true,
            LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::Join(_) => {
                node.apply_expressions(|expr| {
                    let may_differ = expr.exists(|part| {
                        Ok(part.is_volatile_node()
                            || matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)))
                    })?;
                    Ok(if may_differ { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
                })? == TreeNodeRecursion::Continue
            }
            _ => false,
        };
        Ok(if is_repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_repeatable)
}

/// Returns whether filtering a join side by the keys of `asked_of` is worthwhile: the side is large enough, and the
/// join's own runtime filter cannot reach its scans, because they lie below aggregates or because both sides are
/// shuffled by their keys instead of broadcasting one.
fn is_worthwhile(join: &Join, target: &FilteredSide, key_plan: &LogicalPlan, asked: &ReductionState) -> bool {
    let (from, to) = (target.side.opposite().input(join), target.side.input(join));
    let (asked_rows, filtered_rows) = (scanned_rows(key_plan), scanned_rows(to));
    if filtered_rows < asked.rows_min || filtered_rows * COST_SHARE_MAX < asked_rows {
        return false;
    }
    let has_groups = to.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_))));
    let is_preserved = match target.side {
        Side::Left => {
            matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark | JoinType::Right)
        }
        Side::Right => {
            matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark | JoinType::Left)
        }
    };
    if has_groups.expect("the visitor returns no error") {
        return true;
    }
    // The probe side is distributed on the key: its rows stay on their workers and only the build side is shuffled.
    if target.side == Side::Right && is_distribution_key(to, &target.column) {
        return false;
    }
    let rows = estimate_relation(from).rows;
    is_preserved || rows + estimate_relation(to).rows < rows * asked.workers as f64
}

/// Returns the estimated rows that the scans of a plan read.
fn scanned_rows(plan: &LogicalPlan) -> f64 {
    let mut rows = 0.0;
    let walked = plan.apply(|node| {
        if matches!(node, LogicalPlan::TableScan(_)) {
            rows += estimate_relation(node).rows;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("the visitor returns no error");
    rows
}
