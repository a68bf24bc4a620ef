//! Lazy evaluation: branches of CASE, later arguments of COALESCE, arguments of aggregates with FILTER, and the right
//! side of AND and OR if the left side decides.
//!
//! DataFusion turns a CASE of conditions into AND and OR, and evaluates both sides of these for all rows. A division
//! that fails in a row excluded by an earlier condition would be an error that PostgreSQL does not raise.
//!
//! The functions declare for which values they fail (`functions::Fallibility`). A guard costs a second evaluation of
//! the conditions that it repeats, and hides a condition from joins and statistics, so AND and OR guard less than the
//! rest:
//!
//! | the right side fails | CASE, COALESCE, FILTER | AND, OR |
//! |---|---|---|
//! | for some values (`1 / x`, `text::int`) | guarded | guarded |
//! | on overflow (`x + 1`) | guarded | guarded if it reads one relation, so that it is never a key of a join |
//! | beyond 38 digits, where PostgreSQL has a value | guarded | not guarded |
//!
//! A part without columns (`$1 + 1`) is the same for all rows, so it is not guarded against overflow either, and
//! neither is a part that the first operand evaluates for every row anyway.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ExprSchema, Result, ScalarValue, TableReference};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::utils::{split_binary, split_conjunction};
use datafusion::logical_expr::{Expr, Operator, lit};
use functions::{
    Fallibility, LazyPurpose, as_lazy_condition, external, fallibility, fallible_parts, first_true, is_first_true,
    lazy_condition, may_fail, surely_evaluated_parts,
};
use plan::balance;
use session_context::EvaluationContext;
use types::SqlType;
use types::stack_limit::too_complex_error;

use super::duplication_limit::copy_expr;
use super::expr_type::type_of;
use super::type_resolution::with_type_metadata;

/// Rewrites the right side of AND or OR, if it needs a guard, to be evaluated only where the left side does not decide.
pub(super) fn guard_right_side(
    left: &Expr,
    operator: Operator,
    right: Expr,
    session: &EvaluationContext,
) -> Result<Expr> {
    if !needs_guard(left, operator, &right)? {
        return Ok(right);
    }
    // Conditions on other relations would prevent pushing the right side below a join.
    let near = relation_names(&right);
    let is_near = |condition: &Expr| relation_names(condition).is_subset(&near);
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
    if is_guarded_by(&right, &open) {
        return Ok(right);
    }
    let case = Case::new(None, vec![(Box::new(open), Box::new(right))], Some(Box::new(lit(decided))));
    lazy_condition(case, LazyPurpose::Guard)
}

/// Returns whether the right side of AND or OR is guarded by the left one, as the table above says.
fn needs_guard(left: &Expr, operator: Operator, right: &Expr) -> Result<bool> {
    let mut parts = fallible_parts(right)?;
    if parts.is_empty() {
        return Ok(false);
    }
    let is_local = relation_names(right).len() <= 1 && !reads_other_queries(right)?;
    parts.retain(|(part, degree)| match degree {
        Fallibility::ForSomeValues => true,
        Fallibility::OnOverflow => is_local && !part.column_refs().is_empty(),
        Fallibility::BeyondDigits | Fallibility::Never => false,
    });
    if parts.is_empty() {
        return Ok(false);
    }
    let first = match operator {
        Operator::And => split_conjunction(left).into_iter().next(),
        _ => split_binary(left, Operator::Or).into_iter().next(),
    };
    let evaluated: HashSet<&Expr> = first.map(surely_evaluated_parts).transpose()?.into_iter().flatten().collect();
    Ok(parts.into_iter().any(|(part, _)| !evaluated.contains(part) || part.is_volatile()))
}

/// Returns whether an expression reads columns of an outer query or has a subquery.
fn reads_other_queries(expr: &Expr) -> Result<bool> {
    expr.exists(|part| {
        Ok(matches!(
            part,
            Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        ))
    })
}

/// Drops the conditions that the last guarded condition already evaluates: if one of them decides the result, so does
/// the guarded one.
fn without_evaluated<'a>(conditions: &[&'a Expr]) -> Vec<&'a Expr> {
    let Some(last) = conditions.iter().rposition(|condition| is_guarded(condition)) else { return conditions.to_vec() };
    let asked = relation_names(conditions[last]);
    let before = conditions[..last].iter().filter(|condition| !relation_names(condition).is_subset(&asked));
    before.chain(&conditions[last..]).copied().collect()
}

/// Returns whether [`guard_right_side`] built the condition.
fn is_guarded(condition: &Expr) -> bool {
    matches!(as_lazy_condition(condition), Some((LazyPurpose::Guard, _)))
}

/// Returns whether [`guard_right_side`] built the condition with the guard `open`.
fn is_guarded_by(condition: &Expr, open: &Expr) -> bool {
    match as_lazy_condition(condition) {
        Some((LazyPurpose::Guard, case)) => matches!(case.when_then_expr.as_slice(), [(when, _)] if **when == *open),
        _ => false,
    }
}

/// Rewrites an argument of an aggregate, if it may fail, to be evaluated only for rows that pass the FILTER. A volatile
/// filter cannot be evaluated twice.
pub(super) fn evaluate_if(
    filter: &Expr,
    argument: Expr,
    schema: &dyn ExprSchema,
    session: &EvaluationContext,
) -> Result<Expr> {
    let inner = match &argument {
        // A cast that only marks the type.
        Expr::Cast(cast) => cast.expr.as_ref(),
        other => other,
    };
    let is_done = match inner {
        Expr::Case(case) => case.when_then_expr.first().is_some_and(|(when, _)| **when == *filter),
        other => as_lazy_condition(other).is_some_and(|(_, case)| *case.when_then_expr[0].0 == *filter),
    };
    if is_done || !may_fail(&argument)? || filter.is_volatile() {
        return Ok(argument);
    }
    let sql_type = type_of(&argument, schema)?;
    let filter = Box::new(copy_expr(filter, session)?);
    let case = Case::new(None, vec![(filter, Box::new(argument))], None);
    match sql_type {
        SqlType::Bool => lazy_condition(case, LazyPurpose::Branches),
        other => Ok(with_type_metadata(Expr::Case(case), &other)),
    }
}

/// Builds the COALESCE of conditions whose later arguments may fail; `None` if none of them does.
pub(super) fn lazy_coalesce(args: &[Expr], session: &EvaluationContext) -> Result<Option<Expr>> {
    let Some((last, before)) = args.split_last() else { return Ok(None) };
    let mut fails = false;
    for later in args.iter().skip(1) {
        fails = fails || may_fail(later)?;
    }
    if !fails {
        return Ok(None);
    }
    let branch = |arg: &Expr| {
        let is_known = Expr::IsNotNull(Box::new(copy_expr(arg, session)?));
        Ok((Box::new(is_known), Box::new(arg.clone())))
    };
    let branches = before.iter().map(branch).collect::<Result<_>>()?;
    let case = Case::new(None, branches, Some(Box::new(last.clone())));
    lazy_condition(case, LazyPurpose::Branches).map(Some)
}

/// Nesting depth of boolean CASEs from which all their branches are evaluated.
const EAGER_LEVELS_MIN: usize = 4;
/// Nesting limit of lazy CASEs of conditions.
const LAZY_LEVELS_MAX: usize = 8;

/// Lowers a CASE of conditions: to a lazy one if evaluating an unneeded branch could fail, to a call that evaluates
/// all branches if it is nested deeply, because DataFusion copies its conditions for each branch.
///
/// A CASE that is nested too deeply is not lazy if it only may overflow.
///
/// # Errors
/// SQLSTATE 54001 if branches may fail for some values and too many are nested.
pub(super) fn lower_boolean_case(
    case: Case,
    schema: &dyn ExprSchema,
    session: &Arc<EvaluationContext>,
) -> Result<Expr> {
    // Each part by itself: what a condition says of its branch holds only where the CASE is lazy.
    let branches = case.when_then_expr.iter().flat_map(|(when, then)| [when, then]);
    let mut degree = Fallibility::Never;
    for part in branches.chain(&case.else_expr).chain(&case.expr) {
        degree = degree.max(fallibility(part)?);
    }
    let mut nesting = Nesting::default();
    for (when, _) in &case.when_then_expr {
        nesting = nesting.max(Nesting::measure(when, schema)?);
    }
    if degree != Fallibility::Never && nesting.lazy_cases < LAZY_LEVELS_MAX {
        return lazy_condition(case, LazyPurpose::Branches);
    }
    if degree == Fallibility::ForSomeValues {
        return Err(external(too_complex_error()));
    }
    if nesting.copied_conditions < EAGER_LEVELS_MIN || !copies_conditions(&case) {
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
    copied_conditions: usize,
    /// Lazy CASEs.
    lazy_cases: usize,
}

impl Nesting {
    /// Measures an expression; `schema` has its columns.
    fn measure(expr: &Expr, schema: &dyn ExprSchema) -> Result<Self> {
        let (mut deepest, mut open) = (Self::default(), vec![(expr, Self::default())]);
        while let Some((expr, around)) = open.pop() {
            let mut inside = around;
            match expr {
                Expr::Case(case) => {
                    if copies_conditions(case) && has_conditions_as_results(case, schema)? {
                        inside.copied_conditions += 1;
                    }
                    open.extend(case.when_then_expr.iter().map(|(when, _)| (when.as_ref(), inside)));
                    let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
                    open.extend(results.chain(&case.expr).map(|part| (part.as_ref(), around)));
                }
                // Guards of AND and OR are limited by the nodes that they copy.
                Expr::ScalarFunction(_) if matches!(as_lazy_condition(expr), Some((LazyPurpose::Branches, _))) => {
                    let Some((_, case)) = as_lazy_condition(expr) else { continue };
                    inside.lazy_cases += 1;
                    open.extend(case.when_then_expr.iter().map(|(when, _)| (when.as_ref(), inside)));
                    let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
                    open.extend(results.chain(&case.expr).map(|part| (part.as_ref(), around)));
                }
                Expr::ScalarFunction(call) if is_first_true(&call.func) => {
                    inside.copied_conditions = inside.copied_conditions.max(EAGER_LEVELS_MIN);
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
        Self {
            copied_conditions: self.copied_conditions.max(other.copied_conditions),
            lazy_cases: self.lazy_cases.max(other.lazy_cases),
        }
    }
}

fn has_conditions_as_results(case: &Case, schema: &dyn ExprSchema) -> Result<bool> {
    match case.when_then_expr.first() {
        Some((_, then)) => Ok(type_of(then, schema)? == SqlType::Bool),
        None => Ok(false),
    }
}

fn relation_names(expr: &Expr) -> HashSet<Option<TableReference>> {
    expr.column_refs().into_iter().map(|column| column.relation.clone()).collect()
}
