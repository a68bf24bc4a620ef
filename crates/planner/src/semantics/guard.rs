//! What is evaluated only where it is asked for: a branch of CASE, and the right side of AND and OR where the left one decides.
//!
//! DataFusion turns a CASE of conditions into AND and OR, and evaluates both sides of these for all rows. That a division fails in a row
//! that a condition before it excludes would be an error that PostgreSQL does not make.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, TableReference};
use datafusion::logical_expr::expr::{Case, Cast, ScalarFunction};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use types::SqlType;

use super::Session;
use super::copies::copied;
use crate::conditions::balanced;
use crate::functions::can_fail;

/// The right side of AND or OR, asked only where the left one leaves it open; only if it can fail.
pub(super) fn guarded(left: &Expr, operator: Operator, right: Expr, session: &Session) -> Result<Expr> {
    if !may_fail(&right)? {
        return Ok(right);
    }
    // Conditions on other relations would keep the right side from being asked beneath a join.
    let near = relations(&right);
    let is_near = |condition: &Expr| relations(condition).is_subset(&near);
    let (open, decided) = match operator {
        Operator::And => {
            let conditions = split_conjunction(left).into_iter().filter(|condition| is_near(condition));
            let conditions = conditions.map(|condition| copied(condition, session)).collect::<Result<Vec<_>>>()?;
            (balanced(conditions, Operator::And).map(|left| Expr::IsNotFalse(Box::new(left))), false)
        }
        _ if is_near(left) => (Some(Expr::IsNotTrue(Box::new(copied(left, session)?))), true),
        _ => (None, true),
    };
    match open {
        Some(open) => Ok(lazy(Case::new(None, vec![(Box::new(open), Box::new(right))], Some(Box::new(lit(decided)))))),
        None => Ok(right),
    }
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
    Ok(if fails { lazy(case) } else { Expr::Case(case) })
}

/// A CASE of numbers for conditions, which no rule takes apart.
fn lazy(case: Case) -> Expr {
    let number = |condition: Box<Expr>| {
        let field = Arc::new(SqlType::Int2.arrow_field("cast", true));
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
