//! What is evaluated only where it is asked for: a branch of CASE, and the right side of AND and OR where the left one decides.
//!
//! DataFusion turns a CASE of conditions into AND and OR, and evaluates both sides of these for all rows. That a division fails in a row
//! that a condition before it excludes would be an error that PostgreSQL does not make.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, TableReference};
use datafusion::logical_expr::expr::{Case, Cast, ScalarFunction};
use datafusion::logical_expr::utils::{split_binary, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use types::SqlType;
use types::stack::too_complex;

use super::Session;
use super::copies::copied;
use crate::conditions::balanced;
use crate::functions::{FIRST_TRUE_NAME, can_fail, external, first_true};

/// Field name that marks the CASE of a guarded condition.
const GUARD: &str = "guard";

/// The right side of AND or OR, asked only where the left one leaves it open; only if it can fail.
pub(super) fn guarded(left: &Expr, operator: Operator, right: Expr, session: &Session) -> Result<Expr> {
    if !may_fail(&right)? {
        return Ok(right);
    }
    // Conditions on other relations would keep the right side from being asked beneath a join.
    let near = relations(&right);
    let is_near = |condition: &Expr| relations(condition).is_subset(&near);
    let conditions = match operator {
        Operator::And => split_conjunction(left).into_iter().filter(|condition| is_near(condition)).collect(),
        _ if is_near(left) => split_binary(left, Operator::Or),
        _ => Vec::new(),
    };
    let conditions = not_asked_by_others(&conditions);
    let conditions = conditions.into_iter().map(|condition| copied(condition, session)).collect::<Result<Vec<_>>>()?;
    let Some(left) = balanced(conditions, operator).map(Box::new) else { return Ok(right) };
    let (open, decided) = match operator {
        Operator::And => (Expr::IsNotFalse(left), false),
        _ => (Expr::IsNotTrue(left), true),
    };
    let case = Case::new(None, vec![(Box::new(open), Box::new(right))], Some(Box::new(lit(decided))));
    Ok(lazy(case, GUARD))
}

/// Drops the conditions that the last guarded one already evaluates: if one of them decides the result, so does the guarded one.
fn not_asked_by_others<'a>(conditions: &[&'a Expr]) -> Vec<&'a Expr> {
    let Some(last) = conditions.iter().rposition(|condition| is_guarded(condition)) else { return conditions.to_vec() };
    let asked = relations(conditions[last]);
    let before = conditions[..last].iter().filter(|condition| !relations(condition).is_subset(&asked));
    before.chain(&conditions[last..]).copied().collect()
}

/// Whether [`guarded`] made the condition.
fn is_guarded(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, .. }) = condition else { return false };
    let Expr::Case(Case { when_then_expr, .. }) = left.as_ref() else { return false };
    let [(_, then)] = when_then_expr.as_slice() else { return false };
    matches!(then.as_ref(), Expr::Cast(cast) if cast.field.name() == GUARD)
}

/// Nesting limit of CASEs in conditions of others, where each is written once for every branch.
const COPIED_LEVELS_MAX: usize = 4;
/// Nesting limit of those in whose branches something may fail.
const LAZY_LEVELS_MAX: usize = 8;

/// A CASE of conditions as it is, unless evaluating a branch in vain could fail, or it asks for so many others that its conditions would be too many:
/// DataFusion writes them once for each branch.
///
/// # Errors
/// `54001` where branches may fail and too many are nested.
pub(super) fn case_of_conditions(case: Case, session: &Arc<Session>) -> Result<Expr> {
    let mut fails = false;
    if let Some(operand) = &case.expr {
        fails = may_fail(operand)?;
    }
    for (when, then) in &case.when_then_expr {
        fails = fails || may_fail(when)? || may_fail(then)?;
    }
    if let Some(otherwise) = &case.else_expr {
        fails = fails || may_fail(otherwise)?;
    }
    let levels = case.when_then_expr.iter().map(|(when, _)| levels(when)).max().unwrap_or(0);
    if fails {
        return if levels < LAZY_LEVELS_MAX { Ok(lazy(case, "cast")) } else { Err(external(too_complex())) };
    }
    if levels < COPIED_LEVELS_MAX || !copies_conditions(&case) {
        return Ok(Expr::Case(case));
    }
    let branches = case.when_then_expr.into_iter().flat_map(|(when, then)| [*when, *then]);
    let otherwise = case.else_expr.map_or_else(|| Expr::Literal(ScalarValue::Boolean(None), None), |expr| *expr);
    first_true(branches.chain([otherwise]).collect(), session)
}

/// Whether DataFusion writes the conditions of a CASE more than once: not if but one branch is open.
fn copies_conditions(case: &Case) -> bool {
    let is_open = |result: &Expr| !matches!(result, Expr::Literal(ScalarValue::Boolean(Some(_)), _));
    let results = case.when_then_expr.iter().map(|(_, then)| is_open(then));
    let otherwise = case.else_expr.as_ref().is_none_or(|otherwise| is_open(otherwise));
    let has_subqueries = |expr: &Expr| {
        let is_subquery =
            |part: &Expr| Ok(matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)));
        expr.exists(is_subquery).expect("nothing fails on the way")
    };
    // Joins are made of subqueries where they stand.
    let is_plain = case.expr.is_none() && !case.when_then_expr.iter().any(|(_, then)| has_subqueries(then));
    is_plain && 1 < results.chain([otherwise]).filter(|is_open| *is_open).count()
}

/// Nesting depth of CASEs whose conditions are written more than once; those that evaluate all branches count as [`COPIED_LEVELS_MAX`] together.
fn levels(expr: &Expr) -> usize {
    let (mut deepest, mut open) = (0, vec![(expr, 0)]);
    while let Some((expr, around)) = open.pop() {
        let level = match expr {
            Expr::Case(case) if copies_conditions(case) => around + 1,
            Expr::ScalarFunction(call) if call.func.name() == FIRST_TRUE_NAME => around.max(COPIED_LEVELS_MAX),
            _ => around,
        };
        deepest = deepest.max(level);
        let walked = expr.apply_children(|child| {
            open.push((child, level));
            Ok(TreeNodeRecursion::Continue)
        });
        walked.expect("nothing fails on the way");
    }
    deepest
}

/// A CASE of numbers for conditions, which no rule takes apart; the fields of the numbers are called `name`.
fn lazy(case: Case, name: &str) -> Expr {
    let number = |condition: Box<Expr>| {
        let field = Arc::new(SqlType::Int2.arrow_field(name, true));
        Box::new(Expr::Cast(Cast::new_from_field(condition, field)))
    };
    let branches = case.when_then_expr.into_iter().map(|(when, then)| (when, number(then))).collect();
    let case = Expr::Case(Case::new(case.expr, branches, case.else_expr.map(number)));
    let one = Expr::Literal(ScalarValue::Int16(Some(1)), None);
    Expr::BinaryExpr(BinaryExpr::new(Box::new(case), Operator::Eq, Box::new(one)))
}

/// Whether evaluating the expression can fail; within a CASE it does so only where it is meant to.
pub(crate) fn may_fail(expr: &Expr) -> Result<bool> {
    let mut found = false;
    expr.apply(|expr| {
        Ok(match expr {
            Expr::Case(_) | Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => TreeNodeRecursion::Jump,
            Expr::ScalarFunction(ScalarFunction { func, args }) if can_fail(func, args) => {
                found = true;
                TreeNodeRecursion::Stop
            }
            _ => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

fn relations(expr: &Expr) -> HashSet<Option<TableReference>> {
    expr.column_refs().into_iter().map(|column| column.relation.clone()).collect()
}
