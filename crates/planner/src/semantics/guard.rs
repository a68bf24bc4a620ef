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

use super::Session;
use super::copies::copied;
use crate::conditions::balanced;
use crate::functions::can_fail;

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

/// A CASE of conditions as it is, unless evaluating a branch in vain could fail.
pub(super) fn lazy_if_needed(case: Case) -> Result<Expr> {
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
    Ok(if fails { lazy(case, "cast") } else { Expr::Case(case) })
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
