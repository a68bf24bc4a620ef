//! Keys of one side of a join, asked for before the rest of the query runs, so that the other side leaves out early what would find nothing: below
//! groups and below exchanges, where the filters that a running join hands to its scans do not come.
//!
//! Whoever runs the parts of a query in several processes asks [`Optimized::key_question`], has its plan run first, and gives the keys to
//! [`Optimized::with_keys`]. What is asked has no groups, limits or chance in it: it runs a second time in the query itself and must give the same keys.
//!
//! Source: semi-join reduction; Bernstein and Chiu, "Using Semi-Joins to Solve Relational Queries", 1981.

mod function;
mod set;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema, JoinType, NullEquality, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder};

pub(crate) use self::function::HasKey;
pub use self::set::{KEYS_MAX, KeySet};
use crate::optimize::{self, Relation, existence_share};
use crate::shared::{Optimized, by_rules};

/// So many questions are asked for one query.
const QUESTIONS_MAX: usize = 6;
/// What is asked reads at most this share of the rows that the other side reads.
const READ_SHARE_MAX: f64 = 0.5;
/// And leaves at most this share of them.
const LEFT_SHARE_MAX: f64 = 0.3;

/// The rule that brings a filter to where its column is read.
const PUSH_DOWN: &str = "push_down_filter";

/// What has been asked for one query, and for whom.
#[derive(Debug)]
pub struct KeysAsked {
    workers: usize,
    rows_min: f64,
    asked: HashSet<String>,
}

impl KeysAsked {
    /// Nothing yet, for a query that runs on so many workers, where sides of joins that read fewer rows read them as they are.
    #[must_use]
    pub fn of(workers: usize, rows_min: f64) -> Self {
        Self { workers, rows_min, asked: HashSet::new() }
    }
}

/// The keys of a side of a join.
#[derive(Debug)]
pub struct KeyQuestion {
    /// Of one column.
    plan: LogicalPlan,
    /// Which of the plan's joins, from above.
    join: usize,
    filtered: Side,
    column: Column,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl KeyQuestion {
    /// What gives the keys, in one column of [`KeySet::values`], NULL and duplicates among them.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn optimized(&self, state: &SessionState) -> Result<Optimized> {
        Ok(Optimized { plan: by_rules(self.plan.clone(), state)?, shared: Vec::new() })
    }
}

impl Optimized {
    /// The next question that is worth asking.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn key_question(&self, asked: &mut KeysAsked) -> Result<Option<KeyQuestion>> {
        let (mut question, mut number) = (None, 0);
        self.plan.apply(|node| {
            let LogicalPlan::Join(join) = node else { return Ok(TreeNodeRecursion::Continue) };
            number += 1;
            question = question_of(join, number - 1, asked)?;
            Ok(if question.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(question)
    }

    /// The plan that leaves out what has none of these keys, as early as it can.
    ///
    /// # Errors
    /// None that well-formed plans meet.
    pub fn with_keys(self, question: &KeyQuestion, keys: KeySet, state: &SessionState) -> Result<Self> {
        let has_key = HasKey::of(keys).call(vec![Expr::Column(question.column.clone())]);
        let mut number = 0;
        let plan = self.plan.transform_down(|node| {
            let LogicalPlan::Join(mut join) = node else { return Ok(Transformed::no(node)) };
            number += 1;
            if number - 1 != question.join {
                return Ok(Transformed::no(LogicalPlan::Join(join)));
            }
            let side = match question.filtered {
                Side::Left => &mut join.left,
                Side::Right => &mut join.right,
            };
            *side = Arc::new(LogicalPlan::Filter(Filter::try_new(has_key.clone(), Arc::clone(side))?));
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        })?;
        let down: Vec<_> = state.optimizer().rules.iter().filter(|rule| rule.name() == PUSH_DOWN).cloned().collect();
        Ok(Self { plan: optimize::passed(plan.data, &down, state)?.plan, shared: self.shared })
    }
}

fn question_of(join: &Join, number: usize, asked: &mut KeysAsked) -> Result<Option<KeyQuestion>> {
    if join.null_equality != NullEquality::NullEqualsNothing || QUESTIONS_MAX <= asked.asked.len() {
        return Ok(None);
    }
    for filtered in [Side::Left, Side::Right] {
        if !may_leave_out(join.join_type, filtered) {
            continue;
        }
        let (from, to) = match filtered {
            Side::Left => (&join.right, &join.left),
            Side::Right => (&join.left, &join.right),
        };
        // Whatever their size, plans are looked at once each.
        let (mut keys, mut columns) = (Vec::new(), Vec::new());
        for (left, right) in &join.on {
            let (key, column) = if filtered == Side::Left { (right, left) } else { (left, right) };
            let (Expr::Column(key), Expr::Column(column)) = (key, column) else { continue };
            let is_whole = |plan: &LogicalPlan, column: &Column| {
                plan.schema().field_from_column(column).is_ok_and(|field| KeySet::holds(field.data_type()))
            };
            if is_whole(from, key) && is_whole(to, column) {
                keys.push(key);
                columns.push(column);
            }
        }
        if keys.is_empty() || !is_repeatable(from)? || !is_worth(join, from, to, filtered, asked) {
            continue;
        }
        let (from_facts, to_facts) = (Relation::of(from), Relation::of(to));
        let left_of = |at: usize| {
            let key = from_facts.facts(&Expr::Column(keys[at].clone()), from.schema());
            let column = to_facts.facts(&Expr::Column(columns[at].clone()), to.schema());
            existence_share(&[column], &[key])
        };
        let Some(best) = (0..keys.len()).min_by(|a, b| left_of(*a).total_cmp(&left_of(*b))) else { continue };
        let name = format!("{filtered:?} {} = {}", keys[best], columns[best]);
        if LEFT_SHARE_MAX < left_of(best) || !asked.asked.insert(name) {
            continue;
        }
        let plan = LogicalPlanBuilder::from(from.as_ref().clone());
        let plan = plan.project([Expr::Column(keys[best].clone())])?.build()?;
        return Ok(Some(KeyQuestion { plan, join: number, filtered, column: columns[best].clone() }));
    }
    Ok(None)
}

/// Whether rows of this side that find no partner have no part in the join's.
fn may_leave_out(join: JoinType, side: Side) -> bool {
    use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
    match join {
        Inner | LeftSemi | RightSemi => true,
        Left | LeftAnti | LeftMark => side == Side::Right,
        Right | RightAnti | RightMark => side == Side::Left,
        Full => false,
    }
}

/// Whether a plan gives the same rows whenever it runs: sums of floats depend on who was first, and so do limits.
fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
    let mut is_repeatable = true;
    plan.apply(|node| {
        is_repeatable &= match node {
            LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_) => true,
            LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::Join(_) => {
                node.apply_expressions(|expr| {
                    let is_of_chance = expr.exists(|part| {
                        Ok(part.is_volatile_node()
                            || matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)))
                    })?;
                    Ok(if is_of_chance { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
                })? == TreeNodeRecursion::Continue
            }
            _ => false,
        };
        Ok(if is_repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_repeatable)
}

/// Whether keys reach parts of `to` that the join itself, while it runs, does not reach: what is below groups, and what goes by its keys to other
/// workers because the rows of `from` cannot go to all of them.
fn is_worth(join: &Join, from: &LogicalPlan, to: &LogicalPlan, filtered: Side, asked: &KeysAsked) -> bool {
    let (asked_rows, filtered_rows) = (read_rows(from), read_rows(to));
    let rows = Relation::of(from).rows;
    if filtered_rows < asked.rows_min || filtered_rows * READ_SHARE_MAX < asked_rows || KEYS_MAX as f64 <= rows {
        return false;
    }
    let has_groups = to.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_))));
    let comes_out = match filtered {
        Side::Left => {
            matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark | JoinType::Right)
        }
        Side::Right => {
            matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark | JoinType::Left)
        }
    };
    let goes_to_all = rows * asked.workers as f64 <= rows + Relation::of(to).rows;
    comes_out || !goes_to_all || has_groups.expect("nothing fails on the way")
}

/// Rows that the scans of a plan are expected to look at.
fn read_rows(plan: &LogicalPlan) -> f64 {
    let mut rows = 0.0;
    let walked = plan.apply(|node| {
        if matches!(node, LogicalPlan::TableScan(_)) {
            rows += Relation::of(node).rows;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("nothing fails on the way");
    rows
}
