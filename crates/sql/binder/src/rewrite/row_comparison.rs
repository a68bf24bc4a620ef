//! Row values: comparisons of rows become comparisons of their fields.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, Select, UnaryOperator, Value};
use syntax::Walk;
use types::{Condition, SqlError, SqlResult};

/// Rewrites a comparison of rows to comparisons of their fields.
pub(super) fn rewrite_comparison(expr: &mut Expr) -> SqlResult<()> {
    let by_fields = match &*expr {
        Expr::BinaryOp { left, op, right } => match (row(left), row(right)) {
            (Some(left), Some(right)) => compare_fields(left, op, right)?,
            _ => None,
        },
        Expr::IsDistinctFrom(left, right) => match (row(left), row(right)) {
            (Some(left), Some(right)) => {
                let distinct = |(a, b)| Expr::IsDistinctFrom(boxed(a), boxed(b));
                Some(joined(field_pairs(left, right)?.map(distinct), &BinaryOperator::Or))
            }
            _ => None,
        },
        Expr::IsNotDistinctFrom(left, right) => match (row(left), row(right)) {
            (Some(left), Some(right)) => {
                let same = |(a, b)| Expr::IsNotDistinctFrom(boxed(a), boxed(b));
                Some(joined(field_pairs(left, right)?.map(same), &BinaryOperator::And))
            }
            _ => None,
        },
        Expr::IsNull(value) => {
            row(value).map(|fields| joined(fields.iter().map(|it| Expr::IsNull(boxed(it))), &BinaryOperator::And))
        }
        Expr::IsNotNull(value) => {
            row(value).map(|fields| joined(fields.iter().map(|it| Expr::IsNotNull(boxed(it))), &BinaryOperator::And))
        }
        Expr::Between { expr: value, negated, low, high } => match (row(value), row(low), row(high)) {
            (Some(value), Some(low), Some(high)) => {
                let low = compare_fields(value, &BinaryOperator::GtEq, low)?;
                let high = compare_fields(value, &BinaryOperator::LtEq, high)?;
                Some(negated_if(*negated, joined(low.into_iter().chain(high), &BinaryOperator::And)))
            }
            _ => None,
        },
        Expr::InList { expr: value, list, negated } => match row(value) {
            Some(value) => Some(negated_if(*negated, rewrite_in_list(value, list)?)),
            None => None,
        },
        Expr::InSubquery { expr: value, subquery, negated } => match row(value) {
            Some(value) => Some(in_subquery(value, subquery, *negated)?),
            None => None,
        },
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => match (row(left), right.as_ref()) {
            (Some(value), Expr::Subquery(subquery)) => Some(in_subquery(value, subquery, false)?),
            _ => None,
        },
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => match (row(left), right.as_ref()) {
            (Some(value), Expr::Subquery(subquery)) => Some(in_subquery(value, subquery, true)?),
            _ => None,
        },
        _ => None,
    };
    if let Some(by_fields) = by_fields {
        *expr = by_fields;
    }
    Ok(())
}

/// Adds IS TRUE to `(a, b) IN (query)` in WHERE, where unknown counts as false: it then becomes a join.
pub(super) fn rewrite_where(select: &mut Select) -> SqlResult<()> {
    match &mut select.selection {
        Some(condition) => rewrite_where_condition(condition),
        None => Ok(()),
    }
}

fn rewrite_where_condition(condition: &mut Expr) -> SqlResult<()> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            rewrite_where_condition(left)?;
            rewrite_where_condition(right)
        }
        Expr::Nested(inner) => rewrite_where_condition(inner),
        Expr::InSubquery { expr: value, subquery, negated: false } => {
            if let Some(fields) = row(value) {
                *condition = Expr::IsTrue(Box::new(in_subquery(fields, subquery, false)?));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the fields of a row value.
fn row(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(fields) => Some(fields),
        Expr::Nested(inner) => row(inner),
        _ => None,
    }
}

fn field_pairs<'a>(
    left: &'a [Expr],
    right: &'a [Expr],
) -> SqlResult<impl DoubleEndedIterator<Item = (&'a Expr, &'a Expr)>> {
    if left.len() != right.len() {
        return Err(SqlError::new(Condition::SyntaxError, "unequal number of entries in row expressions"));
    }
    if left.is_empty() {
        return Err(SqlError::new(Condition::FeatureNotSupported, "cannot compare rows of zero length"));
    }
    Ok(left.iter().zip(right))
}

fn compare_fields(left: &[Expr], operator: &BinaryOperator, right: &[Expr]) -> SqlResult<Option<Expr>> {
    use BinaryOperator as B;
    let each = |operator: B| move |(a, b): (&Expr, &Expr)| binary(a.clone(), operator.clone(), b.clone());
    Ok(Some(match operator {
        B::Eq => joined(field_pairs(left, right)?.map(each(B::Eq)), &B::And),
        B::NotEq => joined(field_pairs(left, right)?.map(each(B::NotEq)), &B::Or),
        B::Lt | B::LtEq | B::Gt | B::GtEq => {
            let strict = if matches!(operator, B::Lt | B::LtEq) { B::Lt } else { B::Gt };
            // The first fields that differ decide, so the last ones are nested innermost.
            let mut decided: Option<Expr> = None;
            for (a, b) in field_pairs(left, right)?.rev() {
                decided = Some(match decided {
                    None => binary(a.clone(), operator.clone(), b.clone()),
                    Some(later) => {
                        let equal = binary(a.clone(), B::Eq, b.clone());
                        let later = binary(equal, B::And, later);
                        nested(binary(binary(a.clone(), strict.clone(), b.clone()), B::Or, later))
                    }
                });
            }
            nested(decided.expect("rows have fields"))
        }
        _ => return Ok(None),
    }))
}

fn rewrite_in_list(value: &[Expr], list: &[Expr]) -> SqlResult<Expr> {
    let mut equal = Vec::with_capacity(list.len());
    for item in list {
        let Some(item) = row(item) else {
            let message = "operator does not exist: record = unknown";
            return Err(SqlError::new(Condition::UndefinedFunction, message));
        };
        equal.extend(compare_fields(value, &BinaryOperator::Eq, item)?);
    }
    Ok(balanced(equal))
}

/// Builds `row [NOT] IN (query)`, which name resolution expands once it knows the query's columns.
fn in_subquery(value: &[Expr], subquery: &Query, negated: bool) -> SqlResult<Expr> {
    refuse_aggregates(value)?;
    let expr = Box::new(Expr::Tuple(value.to_vec()));
    Ok(Expr::InSubquery { expr, subquery: Box::new(subquery.clone()), negated })
}

/// Rejects aggregates, which would become aggregates of the subquery that the comparison moves into.
fn refuse_aggregates(fields: &[Expr]) -> SqlResult<()> {
    let is_aggregate = |expr: &Expr| match expr {
        Expr::Function(function) => {
            let name = function.name.0.last().and_then(|part| part.as_ident());
            function.over.is_some() || name.is_some_and(|name| functions::aggregate(&name.value).is_some())
        }
        _ => false,
    };
    let found =
        fields.iter().any(|field| {
            let flow = field.walk_expressions(|expr| {
                if is_aggregate(expr) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            flow.is_break()
        });
    if found { Err(SqlError::unsupported("an aggregate in a row before IN (query)")) } else { Ok(()) }
}

fn boxed(expr: &Expr) -> Box<Expr> {
    Box::new(expr.clone())
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

pub(crate) fn negated_if(negated: bool, expr: Expr) -> Expr {
    let op = UnaryOperator::Not;
    if negated { nested(Expr::UnaryOp { op, expr: Box::new(nested(expr)) }) } else { expr }
}

pub(crate) fn joined(exprs: impl Iterator<Item = Expr>, operator: &BinaryOperator) -> Expr {
    let joined = exprs.reduce(|left, right| binary(left, operator.clone(), right));
    nested(joined.unwrap_or_else(|| Expr::Value(Value::Boolean(true).into())))
}

/// Builds a balanced tree of OR.
fn balanced(mut exprs: Vec<Expr>) -> Expr {
    if exprs.len() <= 2 {
        return joined(exprs.into_iter(), &BinaryOperator::Or);
    }
    let right = exprs.split_off(exprs.len() / 2);
    nested(binary(balanced(exprs), BinaryOperator::Or, balanced(right)))
}
