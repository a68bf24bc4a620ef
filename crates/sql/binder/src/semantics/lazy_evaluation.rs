//! Lazy evaluation: branches of CASE, and the right side of AND and OR if the left side decides.
//!
//! DataFusion turns a CASE of conditions into AND and OR, and evaluates both sides of these for all rows. A division
//! that fails in a row excluded by an earlier condition would be an error that PostgreSQL does not raise.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ExprSchema, Result, ScalarValue, TableReference};
use datafusion::logical_expr::expr::{Case, Cast};
use datafusion::logical_expr::utils::{split_binary, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use functions::{FIRST_TRUE_NAME, external, first_true, may_fail};
use plan::balance;
use session_context::EvaluationContext;
use types::SqlType;
use types::stack::too_complex_error;

use super::copy_limit::copy_expr;
use super::expr_type::type_of;

/// Field name that marks the CASE of a guarded condition.
const GUARD_MARK: &str = "guard";
/// Field name that marks a lazy CASE of conditions.
const LAZY_MARK: &str = "cast";

/// Rewrites the right side of AND or OR, if it can fail, to be evaluated only where the left side does not decide.
pub(super) fn guard_right_side(
    left: &Expr,
    operator: Operator,
    right: Expr,
    session: &EvaluationContext,
) -> Result<Expr> {
    if !may_fail(&right)? {
        return Ok(right);
    }
    // Conditions on other relations would prevent pushing the right side below a join.
    let near = relations(&right);
    let is_near = |condition: &Expr| relations(condition).is_subset(&near);
    let conditions = match operator {
        Operator::And => split_conjunction(left).into_iter().filter(|condition| is_near(condition)).collect(),
        _ if is_near(left) => split_binary(left, Operator::Or),
        _ => Vec::new(),
    };
    let conditions = without_evaluated(&conditions);
    let conditions =
        conditions.into_iter().map(|condition| copy_expr(condition, session)).collect::<Result<Vec<_>>>()?;
    let Some(left) = balance(conditions, operator).map(Box::new) else { return Ok(right) };
    let (open, decided) = match operator {
        Operator::And => (Expr::IsNotFalse(left), false),
        _ => (Expr::IsNotTrue(left), true),
    };
    let case = Case::new(None, vec![(Box::new(open), Box::new(right))], Some(Box::new(lit(decided))));
    Ok(lazy_case(case, GUARD_MARK))
}

/// Drops the conditions that the last guarded condition already evaluates: if one of them decides the result, so does
/// the guarded one.
fn without_evaluated<'a>(conditions: &[&'a Expr]) -> Vec<&'a Expr> {
    let Some(last) = conditions.iter().rposition(|condition| is_guarded(condition)) else { return conditions.to_vec() };
    let asked = relations(conditions[last]);
    let before = conditions[..last].iter().filter(|condition| !relations(condition).is_subset(&asked));
    before.chain(&conditions[last..]).copied().collect()
}

/// Returns whether [`guard_right_side`] built the condition.
fn is_guarded(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, .. }) = condition else { return false };
    let Expr::Case(Case { when_then_expr, .. }) = left.as_ref() else { return false };
    let [(_, then)] = when_then_expr.as_slice() else { return false };
    matches!(then.as_ref(), Expr::Cast(cast) if cast.field.name() == GUARD_MARK)
}

/// Nesting depth of boolean CASEs from which all their branches are evaluated.
const EAGER_LEVELS_MIN: usize = 4;
/// Nesting limit of boolean CASEs in whose branches something may fail.
const LAZY_LEVELS_MAX: usize = 8;

/// Lowers a CASE of conditions: to a lazy one if evaluating an unneeded branch could fail, to a call that evaluates
/// all branches if it is nested deeply, because DataFusion copies its conditions for each branch.
///
/// # Errors
/// SQLSTATE 54001 if branches may fail and too many are nested.
pub(super) fn lower_boolean_case(
    case: Case,
    schema: &dyn ExprSchema,
    session: &Arc<EvaluationContext>,
) -> Result<Expr> {
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
    let mut nesting = Nesting::default();
    for (when, _) in &case.when_then_expr {
        nesting = nesting.max(Nesting::measure(when, schema)?);
    }
    if fails {
        return if nesting.lazy < LAZY_LEVELS_MAX {
            Ok(lazy_case(case, LAZY_MARK))
        } else {
            Err(external(too_complex_error()))
        };
    }
    if nesting.copied < EAGER_LEVELS_MIN || !copies_conditions(&case) {
        return Ok(Expr::Case(case));
    }
    let branches = case.when_then_expr.into_iter().flat_map(|(when, then)| [*when, *then]);
    let otherwise = case.else_expr.map_or_else(|| Expr::Literal(ScalarValue::Boolean(None), None), |expr| *expr);
    first_true(branches.chain([otherwise]).collect(), session)
}

/// Returns whether DataFusion rewrites a CASE of conditions to AND and OR that contain its conditions several times;
/// branches that are false are dropped.
fn copies_conditions(case: &Case) -> bool {
    let stays = |result: &Expr| !matches!(result, Expr::Literal(ScalarValue::Boolean(Some(false)), _));
    let results = case.when_then_expr.iter().map(|(_, then)| stays(then));
    let otherwise = case.else_expr.as_ref().is_none_or(|otherwise| stays(otherwise));
    let is_rewritten = case.expr.is_none() && case.when_then_expr.len() < 3;
    is_rewritten && 1 < results.chain([otherwise]).filter(|stays| *stays).count()
}

/// Nesting depth of CASEs in an expression, each in a condition of the one around it.
#[derive(Clone, Copy, Default)]
struct Nesting {
    /// CASEs whose conditions DataFusion copies; calls that evaluate all branches count as [`EAGER_LEVELS_MIN`].
    copied: usize,
    /// Lazy CASEs.
    lazy: usize,
}

impl Nesting {
    /// Measures an expression; `schema` has its columns.
    fn measure(expr: &Expr, schema: &dyn ExprSchema) -> Result<Self> {
        let (mut deepest, mut open) = (Self::default(), vec![(expr, Self::default())]);
        while let Some((expr, around)) = open.pop() {
            let mut inside = around;
            match expr {
                Expr::Case(case) => {
                    if is_lazy(case) {
                        inside.lazy += 1;
                    } else if copies_conditions(case) && has_conditions_as_results(case, schema)? {
                        inside.copied += 1;
                    }
                    open.extend(case.when_then_expr.iter().map(|(when, _)| (when.as_ref(), inside)));
                    let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
                    open.extend(results.chain(&case.expr).map(|part| (part.as_ref(), around)));
                }
                Expr::ScalarFunction(call) if call.func.name() == FIRST_TRUE_NAME => {
                    inside.copied = inside.copied.max(EAGER_LEVELS_MIN);
                    open.extend(call.args.iter().map(|part| (part, inside)));
                }
                _ => {
                    expr.apply_children(|part| {
                        open.push((part, around));
                        Ok(TreeNodeRecursion::Continue)
                    })?;
                }
            }
            deepest = deepest.max(inside);
        }
        Ok(deepest)
    }

    fn max(self, other: Self) -> Self {
        Self { copied: self.copied.max(other.copied), lazy: self.lazy.max(other.lazy) }
    }
}

fn has_conditions_as_results(case: &Case, schema: &dyn ExprSchema) -> Result<bool> {
    match case.when_then_expr.first() {
        Some((_, then)) => Ok(type_of(then, schema)? == SqlType::Bool),
        None => Ok(false),
    }
}

fn is_lazy(case: &Case) -> bool {
    let is_number = |then: &Expr| matches!(then, Expr::Cast(cast) if cast.field.name() == LAZY_MARK);
    case.when_then_expr.iter().all(|(_, then)| is_number(then))
}

/// Builds a CASE of numbers instead of conditions, which no rule rewrites; the fields of the numbers are called
/// `name`.
fn lazy_case(case: Case, name: &str) -> Expr {
    let number = |condition: Box<Expr>| {
        let field = Arc::new(SqlType::Int2.arrow_field(name, true));
        Box::new(Expr::Cast(Cast::new_from_field(condition, field)))
    };
    let branches = case.when_then_expr.into_iter().map(|(when, then)| (when, number(then))).collect();
    let case = Expr::Case(Case::new(case.expr, branches, case.else_expr.map(number)));
    let one = Expr::Literal(ScalarValue::Int16(Some(1)), None);
    Expr::BinaryExpr(BinaryExpr::new(Box::new(case), Operator::Eq, Box::new(one)))
}

fn relations(expr: &Expr) -> HashSet<Option<TableReference>> {
    expr.column_refs().into_iter().map(|column| column.relation.clone()).collect()
}
