//! Fallibility of calls and expressions: whether they fail for some values of their columns.
//!
//! Each overload declares it ([`FailsFor`]), and so does each cast ([`CastFunction::fallibility`]). The binder guards
//! what may fail by the conditions that exclude rows from it; the optimizer does not move it to other rows.
//!
//! Limits on the size of a value (one gigabyte) and on memory are not counted where a result is about as long as the
//! arguments together: they stop a statement wherever it evaluates such a value.

use std::cmp::Ordering;
use std::rc::Rc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, InList, ScalarFunction};
use datafusion::logical_expr::utils::{split_binary, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, ScalarUDF, Volatility};
use types::SqlType;
use types::numeric::NumericPrecision;

use super::cast::CastFunction;
use super::datafusion_function::DataFusionFunction;
use super::hide_grouping_key::is_hiding_function;
use super::key_set_membership::HasKey;
use super::lazy_case::LazyFunction;
use super::scalar_udf::ResolvedFunction;

#[cfg(test)]
mod tests;

/// Degree to which a call or an expression can fail, in increasing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fallibility {
    /// It has a value for every row.
    Never,
    /// It fails for numerics of more than 38 digits only, where PostgreSQL has a value.
    BeyondDigits,
    /// It fails only where the result leaves the range of its type.
    OnOverflow,
    /// It fails for some ordinary values, or it is not known that it does not.
    ForSomeValues,
}

/// Values for which an overload fails: the declaration in its definition.
#[derive(Clone, Copy)]
pub(crate) enum FailsFor {
    Nothing,
    /// Results of more than 38 digits.
    Digits,
    /// Results beyond the range of the result type.
    Overflow,
    /// Some ordinary values; also where nobody knows.
    SomeValues,
    /// Some values of the arguments at these positions, which are literals in most statements, and no values of the
    /// others. A call with these literals is tried.
    Literals(&'static [usize]),
    /// Values that depend on the types of the arguments, and on what is known of their values.
    Computed(fn(&KnownArguments<'_>) -> Fallibility),
}

/// Facts about the arguments of a call.
pub(crate) struct KnownArguments<'a> {
    pub(crate) types: &'a [SqlType],
    pub(crate) values: &'a [KnownValue<'a>],
}

/// Fact about the value of one argument.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KnownValue<'a> {
    Unknown,
    Literal(&'a ScalarValue),
    NonZero,
    Positive,
}

impl KnownArguments<'_> {
    fn literal(&self, at: usize) -> Option<&ScalarValue> {
        match self.values.get(at) {
            Some(KnownValue::Literal(value)) => Some(value),
            _ => None,
        }
    }

    fn text(&self, at: usize) -> Option<&str> {
        self.literal(at)?.try_as_str().flatten()
    }

    /// Returns whether the argument is not 0; NULL is not.
    fn is_nonzero(&self, at: usize) -> bool {
        match self.values.get(at) {
            Some(KnownValue::NonZero | KnownValue::Positive) => true,
            Some(KnownValue::Literal(value)) => value.is_null() || sign(value).is_some_and(Ordering::is_ne),
            Some(KnownValue::Unknown) | None => false,
        }
    }

    /// Returns whether the argument is greater than 0.
    fn is_positive(&self, at: usize) -> bool {
        match self.values.get(at) {
            Some(KnownValue::Positive) => true,
            Some(KnownValue::Literal(value)) => sign(value).is_some_and(Ordering::is_gt),
            Some(KnownValue::NonZero | KnownValue::Unknown) | None => false,
        }
    }

    fn digits(&self, at: usize) -> Option<NumericPrecision> {
        NumericPrecision::from_sql_type(self.types.get(at)?)
    }
}

/// Quotient of integers: the smallest integer divided by -1 leaves the type.
pub(crate) fn integer_quotient(arguments: &KnownArguments<'_>) -> Fallibility {
    match arguments.is_nonzero(1) {
        true if arguments.is_positive(1) => Fallibility::Never,
        true => Fallibility::OnOverflow,
        false => Fallibility::ForSomeValues,
    }
}

/// Quotient of numerics: a small divisor makes many digits.
pub(crate) fn decimal_quotient(arguments: &KnownArguments<'_>) -> Fallibility {
    if arguments.is_nonzero(1) { Fallibility::BeyondDigits } else { Fallibility::ForSomeValues }
}

pub(crate) fn float_quotient(arguments: &KnownArguments<'_>) -> Fallibility {
    if arguments.is_nonzero(1) { Fallibility::OnOverflow } else { Fallibility::ForSomeValues }
}

pub(crate) fn remainder(arguments: &KnownArguments<'_>) -> Fallibility {
    if arguments.is_nonzero(1) { Fallibility::Never } else { Fallibility::ForSomeValues }
}

/// Sum or difference of numerics: the digits of the types may rule out an overflow.
pub(crate) fn decimal_sum(arguments: &KnownArguments<'_>) -> Fallibility {
    let (Some(a), Some(b)) = (arguments.digits(0), arguments.digits(1)) else { return Fallibility::BeyondDigits };
    let whole = (a.precision - a.scale).max(b.precision - b.scale);
    if whole + 1 + a.scale.max(b.scale) <= 38 { Fallibility::Never } else { Fallibility::BeyondDigits }
}

/// Product of numerics: the digits of the types may rule out an overflow.
pub(crate) fn decimal_product(arguments: &KnownArguments<'_>) -> Fallibility {
    let (Some(a), Some(b)) = (arguments.digits(0), arguments.digits(1)) else { return Fallibility::BeyondDigits };
    if a.precision + b.precision <= 38 { Fallibility::Never } else { Fallibility::BeyondDigits }
}

/// LIKE fails where a pattern ends with its escape character.
pub(crate) fn like_pattern(arguments: &KnownArguments<'_>) -> Fallibility {
    match arguments.text(1) {
        Some(pattern) if !pattern.ends_with('\\') => Fallibility::Never,
        _ => Fallibility::ForSomeValues,
    }
}

/// `replace` fails where the text becomes too long, which it cannot where the replacement is no longer.
pub(crate) fn replacement(arguments: &KnownArguments<'_>) -> Fallibility {
    match (arguments.text(1), arguments.text(2)) {
        (Some(from), Some(to)) if to.len() <= from.len() => Fallibility::Never,
        _ => Fallibility::ForSomeValues,
    }
}

/// Returns how a number compares with 0; `None` for NULL, NaN and other types.
fn sign(value: &ScalarValue) -> Option<Ordering> {
    match value {
        ScalarValue::Int16(Some(value)) => Some(value.cmp(&0)),
        ScalarValue::Int32(Some(value)) => Some(value.cmp(&0)),
        ScalarValue::Int64(Some(value)) => Some(value.cmp(&0)),
        ScalarValue::Decimal128(Some(value), ..) => Some(value.cmp(&0)),
        ScalarValue::Float32(Some(value)) => value.partial_cmp(&0.0),
        ScalarValue::Float64(Some(value)) => value.partial_cmp(&0.0),
        _ => None,
    }
}

/// Returns the fallibility of a call of `function` whose arguments are literals or unknown.
#[must_use]
pub fn call_fallibility(function: &ScalarUDF, literals: &[Option<&ScalarValue>]) -> Fallibility {
    let values: Vec<KnownValue<'_>> =
        literals.iter().map(|literal| literal.map_or(KnownValue::Unknown, KnownValue::Literal)).collect();
    fallibility_of_call(function, &values)
}

fn fallibility_of_call(function: &ScalarUDF, values: &[KnownValue<'_>]) -> Fallibility {
    let inner = function.inner();
    // Such as `current_schema()`.
    let is_session_value = values.is_empty() && function.signature().volatility != Volatility::Volatile;
    let declared = if let Some(resolved) = inner.downcast_ref::<ResolvedFunction>() {
        resolved.fallibility(values)
    } else if let Some(cast) = inner.downcast_ref::<CastFunction>() {
        cast.fallibility()
    } else if let Some(function) = inner.downcast_ref::<DataFusionFunction>() {
        function.fallibility()
    } else if inner.is::<HasKey>() || inner.is::<LazyFunction>() || is_hiding_function(function) || is_session_value {
        Fallibility::Never
    } else {
        // Not resolved yet, of the system catalog, a check of a constraint, or DataFusion's own.
        Fallibility::ForSomeValues
    };
    // Calls with literals only become literals, unless they fail.
    let is_constant = !values.is_empty() && values.iter().all(|value| matches!(value, KnownValue::Literal(_)));
    if is_constant && declared != Fallibility::Never { Fallibility::ForSomeValues } else { declared }
}

/// Returns the fallibility of an expression: that of the part which is most likely to fail.
///
/// Aggregates, window functions and subqueries are not searched: their own operators evaluate them.
///
/// # Errors
/// None for well-formed expressions.
pub fn fallibility(expr: &Expr) -> Result<Fallibility> {
    let calls = fallible_parts(expr)?;
    Ok(calls.into_iter().map(|(_, degree)| degree).max().unwrap_or(Fallibility::Never))
}

/// Returns whether evaluating an expression can fail.
///
/// # Errors
/// None for well-formed expressions.
pub fn may_fail(expr: &Expr) -> Result<bool> {
    Ok(fallibility(expr)? != Fallibility::Never)
}

/// Returns whether an expression can fail depending on the row. Parts without columns are the same for all rows.
///
/// # Errors
/// None for well-formed expressions.
pub fn may_fail_by_row(expr: &Expr) -> Result<bool> {
    Ok(fallible_parts(expr)?.into_iter().any(|(part, _)| !part.column_refs().is_empty() || part.is_volatile()))
}

/// Returns the parts of an expression that can fail by themselves, and not only because an argument does.
///
/// # Errors
/// None for well-formed expressions.
pub fn fallible_parts(expr: &Expr) -> Result<Vec<(&Expr, Fallibility)>> {
    let mut found = Vec::new();
    let mut open = vec![(expr, Rc::new(Vec::new()))];
    while let Some((expr, facts)) = open.pop() {
        match expr {
            Expr::AggregateFunction(_)
            | Expr::WindowFunction(_)
            | Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_) => continue,
            Expr::Case(case) => {
                push_case_branches(case, &facts, &mut open);
                continue;
            }
            _ => {}
        }
        let degree = match expr {
            Expr::ScalarFunction(ScalarFunction { func, args }) => {
                let values: Vec<KnownValue<'_>> = args.iter().map(|arg| known_value(arg, &facts)).collect();
                fallibility_of_call(func, &values)
            }
            // The optimizer makes arithmetic of its own; the operators of statements are functions.
            Expr::BinaryExpr(BinaryExpr { op: Operator::Plus | Operator::Minus | Operator::Multiply, .. }) => {
                Fallibility::OnOverflow
            }
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::Divide | Operator::Modulo | Operator::IntegerDivide, ..
            })
            | Expr::SimilarTo(_)
            | Expr::Unnest(_) => Fallibility::ForSomeValues,
            // A cast that can fail is a `CastFunction`: `Expr::Cast` is for casts that Arrow performs for every value.
            _ => Fallibility::Never,
        };
        if degree != Fallibility::Never {
            found.push((expr, degree));
        }
        expr.apply_children(|child| {
            open.push((child, Rc::clone(&facts)));
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found)
}

/// Fact that a condition establishes: the expression is not 0.
#[derive(Debug, Clone, Copy)]
struct NonZeroFact<'e> {
    expr: &'e Expr,
    is_positive: bool,
}

/// Expression that is still to be searched, with the facts that hold where it is evaluated.
type PendingExpression<'e> = (&'e Expr, Rc<Vec<NonZeroFact<'e>>>);

/// Opens the parts of a CASE: a result is evaluated only where its condition is true and those before are not.
fn push_case_branches<'e>(case: &'e Case, facts: &Rc<Vec<NonZeroFact<'e>>>, open: &mut Vec<PendingExpression<'e>>) {
    let mut facts = Rc::clone(facts);
    if let Some(operand) = &case.expr {
        open.push((operand, Rc::clone(&facts)));
    }
    let with = |facts: &Rc<Vec<NonZeroFact<'e>>>, more: Vec<NonZeroFact<'e>>| {
        if more.is_empty() { Rc::clone(facts) } else { Rc::new(facts.iter().copied().chain(more).collect()) }
    };
    for (when, then) in &case.when_then_expr {
        let is_searched = case.expr.is_none();
        let established = if is_searched { facts_if_true(when) } else { Vec::new() };
        open.push((when, Rc::clone(&facts)));
        open.push((then, with(&facts, established)));
        if is_searched {
            facts = with(&facts, facts_if_not_true(when));
        }
    }
    if let Some(otherwise) = &case.else_expr {
        open.push((otherwise, facts));
    }
}

/// Returns the facts that hold where a condition is true.
fn facts_if_true(condition: &Expr) -> Vec<NonZeroFact<'_>> {
    split_conjunction(condition).into_iter().filter_map(|condition| fact(condition, Some)).collect()
}

/// Returns the facts that hold where a condition is false or NULL. An expression that is NULL may be divided by.
fn facts_if_not_true(condition: &Expr) -> Vec<NonZeroFact<'_>> {
    split_binary(condition, Operator::Or).into_iter().filter_map(|condition| fact(condition, negated)).collect()
}

/// Returns the comparison that holds where another does not.
fn negated(operator: Operator) -> Option<Operator> {
    Some(match operator {
        Operator::Eq => Operator::NotEq,
        Operator::NotEq => Operator::Eq,
        Operator::Lt => Operator::GtEq,
        Operator::LtEq => Operator::Gt,
        Operator::Gt => Operator::LtEq,
        Operator::GtEq => Operator::Lt,
        _ => return None,
    })
}

/// Returns what a comparison with a number says, read as the operator that `holding` returns for it.
fn fact(condition: &Expr, holding: impl Fn(Operator) -> Option<Operator>) -> Option<NonZeroFact<'_>> {
    let (expr, operator, value) = comparison_with_number(condition)?;
    let (is_nonzero, is_positive) = match holding(operator)? {
        Operator::Gt => (value.is_ge(), value.is_ge()),
        Operator::GtEq => (value.is_gt(), value.is_gt()),
        Operator::Lt => (value.is_le(), false),
        Operator::LtEq => (value.is_lt(), false),
        Operator::NotEq => (value.is_eq(), false),
        Operator::Eq => (value.is_ne(), value.is_gt()),
        _ => return None,
    };
    (is_nonzero && !expr.is_volatile()).then_some(NonZeroFact { expr, is_positive })
}

/// Returns the sides of a comparison with a number: the expression, the operator as seen from it, and how the number
/// compares with 0.
fn comparison_with_number(condition: &Expr) -> Option<(&Expr, Operator, Ordering)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    if let Expr::Literal(value, _) = right.as_ref() {
        return Some((without_casts(left), *op, sign(value)?));
    }
    let Expr::Literal(value, _) = left.as_ref() else { return None };
    Some((without_casts(right), op.swap()?, sign(value)?))
}

/// Removes casts to wider types, which keep 0 and the sign.
fn without_casts(mut expr: &Expr) -> &Expr {
    while let Expr::Cast(cast) = expr {
        expr = &cast.expr;
    }
    expr
}

/// Returns what is known of the value of an argument.
fn known_value<'e>(argument: &'e Expr, facts: &[NonZeroFact<'e>]) -> KnownValue<'e> {
    if let Expr::Literal(value, _) = argument {
        return KnownValue::Literal(value);
    }
    let argument = without_casts(argument);
    let holding = facts.iter().filter(|fact| fact.expr == argument);
    match holding.map(|fact| fact.is_positive).max() {
        Some(true) => KnownValue::Positive,
        Some(false) => KnownValue::NonZero,
        None if is_null_if_zero(argument) => KnownValue::NonZero,
        None => KnownValue::Unknown,
    }
}

/// Returns whether an expression is NULLIF of a value and 0, in one of its planned forms.
fn is_null_if_zero(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) => match args.as_slice() {
            [_, Expr::Literal(value, _)] => {
                let function = func.inner().downcast_ref::<DataFusionFunction>();
                function.is_some_and(DataFusionFunction::is_nullif) && sign(value).is_some_and(Ordering::is_eq)
            }
            _ => false,
        },
        Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(otherwise) }) => {
            match when_then_expr.as_slice() {
                [(when, then)] => {
                    let is_null = matches!(without_casts(then), Expr::Literal(value, _) if value.is_null());
                    let otherwise = without_casts(otherwise);
                    is_null && facts_if_not_true(when).iter().any(|fact| fact.expr == otherwise)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Returns the parts of an expression that are evaluated for every row for which the expression is.
///
/// # Errors
/// None for well-formed expressions.
pub fn surely_evaluated_parts(expr: &Expr) -> Result<Vec<&Expr>> {
    let mut found = Vec::new();
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        found.push(expr);
        match expr {
            Expr::Case(case) => {
                let first = case.when_then_expr.first().map(|(when, _)| when.as_ref());
                open.extend(case.expr.as_deref().into_iter().chain(first));
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, .. }) => open.push(left),
            Expr::InList(InList { expr, .. }) => open.push(expr),
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.short_circuits() => open.extend(args.first()),
            Expr::AggregateFunction(_)
            | Expr::WindowFunction(_)
            | Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_) => {}
            _ => {
                expr.apply_children(|child| {
                    open.push(child);
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
        }
    }
    Ok(found)
}
