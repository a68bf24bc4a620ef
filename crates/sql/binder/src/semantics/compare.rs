//! Comparisons: chooses the common type of both sides as PostgreSQL does, and leaves columns without casts where a
//! literal can be cast instead.

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use functions::cast::{CastKind, is_text, lower_cast, typed_literal};
use functions::type_rules::{Operand, operand_type_beside, plain_type_name, same_base_type, unify_types};
use functions::{comparison_key, external, missing_operator};
use session_context::EvaluationContext;
use types::numeric::{self, NumericPrecision};
use types::text::US_PER_DAY;
use types::{SqlError, SqlResult, SqlType};

use super::compare_number;

/// Expression with its SQL type.
#[derive(Debug, Clone)]
pub(crate) struct TypedExpr {
    pub(crate) expr: Expr,
    pub(crate) sql_type: SqlType,
}

/// Lowers `left op right` with PostgreSQL's semantics.
///
/// # Errors
/// SQLSTATE 42883 if PostgreSQL has no such operator.
pub(crate) fn lower_comparison(
    operator: Operator,
    left: TypedExpr,
    right: TypedExpr,
    session: &Arc<EvaluationContext>,
) -> Result<Expr> {
    if let Some(expr) = date_with_timestamp(operator, &left, &right) {
        return Ok(expr);
    }
    if let Some(swapped) = operator.swap()
        && let Some(expr) = date_with_timestamp(swapped, &right, &left)
    {
        return Ok(expr);
    }
    if let Some(expr) = compare_number::lower_with_constant(operator, &left, &right).map_err(external)? {
        return Ok(expr);
    }
    let (left, right) = cast_to_comparable(operator.to_string().as_str(), left, right, session)?;
    Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right))))
}

/// Casts both sides to their common type, and replaces them by their comparison keys if the type has one.
pub(crate) fn cast_to_comparable(
    operator: &str,
    left: TypedExpr,
    right: TypedExpr,
    session: &Arc<EvaluationContext>,
) -> Result<(Expr, Expr)> {
    let (left, right, sql_type) = cast_to_comparison_type(operator, left, right, session)?;
    check_element_type(&sql_type)?;
    match comparison_key(&sql_type) {
        Some(key) => Ok((key(left, session)?, key(right, session)?)),
        None => Ok((left, right)),
    }
}

/// Checks the element type of arrays.
///
/// # Errors
/// SQLSTATE 0A000 for arrays whose elements have a comparison key.
pub(super) fn check_element_type(sql_type: &SqlType) -> Result<()> {
    match sql_type {
        SqlType::Array(element) if comparison_key(element).is_some() => {
            Err(external(SqlError::unsupported(format_args!("a comparison of arrays of {}", plain_type_name(element)))))
        }
        _ => Ok(()),
    }
}

/// Casts both sides to the type they are compared in.
fn cast_to_comparison_type(
    operator: &str,
    left: TypedExpr,
    right: TypedExpr,
    session: &Arc<EvaluationContext>,
) -> Result<(Expr, Expr, SqlType)> {
    if let Some(moved) = convert_literal(&right, &left.sql_type) {
        return Ok((left.expr, moved, left.sql_type));
    }
    if let Some(moved) = convert_literal(&left, &right.sql_type) {
        return Ok((moved, right.expr, right.sql_type));
    }
    if let Some(padded) = pad_parameter(&right, &left.sql_type, session)? {
        return Ok((left.expr, padded, left.sql_type));
    }
    if let Some(padded) = pad_parameter(&left, &right.sql_type, session)? {
        return Ok((padded, right.expr, right.sql_type));
    }
    let missing =
        || external(missing_operator(operator, &plain_type_name(&left.sql_type), &plain_type_name(&right.sql_type)));
    let common = comparison_type(Operand::new(&left.expr, &left.sql_type), Operand::new(&right.expr, &right.sql_type));
    let sql_type = common.map_err(external)?.ok_or_else(missing)?;
    let cast = |side: TypedExpr| match (&side.sql_type, &sql_type) {
        // Both types have the same representation: the column needs no cast.
        (SqlType::Varchar(_), SqlType::Text) => Ok(side.expr),
        (from, to) => lower_cast(side.expr, from, to, CastKind::Explicit, session),
    };
    Ok((cast(left)?, cast(right)?, sql_type.clone()))
}

/// Returns the type in which two operands are compared; `None` if PostgreSQL has no such operator.
///
/// # Errors
/// Those of [`operand_type_beside`].
pub(crate) fn comparison_type(left: Operand<'_>, right: Operand<'_>) -> SqlResult<Option<SqlType>> {
    Ok(match (left, right) {
        (Operand::Typed(left), Operand::Typed(right)) => typed_comparison_type(left, right),
        (Operand::Typed(SqlType::Json), _) | (_, Operand::Typed(SqlType::Json)) => None,
        // `varchar` uses the comparison operators of text.
        (Operand::Typed(SqlType::Varchar(_)), _) | (_, Operand::Typed(SqlType::Varchar(_))) => Some(SqlType::Text),
        (Operand::Typed(known), untyped) | (untyped, Operand::Typed(known)) => {
            typed_comparison_type(known, &operand_type_beside(known, untyped)?)
        }
        _ => Some(SqlType::Text),
    })
}

/// Returns the type in which values of two types are compared.
fn typed_comparison_type(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    use SqlType as T;
    match (left, right) {
        (T::Json, _) | (_, T::Json) => None,
        (left, right) if left == right => Some(left.clone()),
        (T::Char(_), T::Char(_) | T::Varchar(_)) | (T::Varchar(_), T::Char(_)) => Some(T::Char(None)),
        (left, right) if is_text(left) && is_text(right) => Some(T::Text),
        (left, right) if left.is_oid() && right.is_oid() => Some(T::Oid),
        (oid, T::Int2 | T::Int4 | T::Int8) | (T::Int2 | T::Int4 | T::Int8, oid) if oid.is_oid() => Some(T::Int8),
        (T::Time, T::Interval) | (T::Interval, T::Time) => Some(T::Interval),
        (T::Float4 | T::Float8, other) | (other, T::Float4 | T::Float8)
            if NumericPrecision::from_sql_type(other).is_some() =>
        {
            Some(T::Float8)
        }
        _ => unify_types(left, right),
    }
}

/// Converts a literal to the other side's type, if this does not change the outcome of any comparison.
fn convert_literal(literal: &TypedExpr, wanted: &SqlType) -> Option<Expr> {
    let Expr::Literal(value, _) = &literal.expr else { return None };
    if value.is_null() {
        return None;
    }
    if let SqlType::Char(Some(length)) = wanted {
        let text = is_text(&literal.sql_type).then(|| value.try_as_str().flatten())??;
        // Trailing blanks are significant in text, but not in `char(n)`.
        if literal.sql_type == SqlType::Text && text.ends_with(' ') {
            return None;
        }
        let trimmed = text.trim_end_matches(' ');
        // A longer literal equals no value of the type, and sorts correctly among them.
        let missing = usize::try_from(*length).ok()?.saturating_sub(trimmed.chars().count());
        let padded = [trimmed, &" ".repeat(missing)].concat();
        return Some(typed_literal(ScalarValue::Utf8View(Some(padded)), wanted));
    }
    if same_base_type(&literal.sql_type, wanted) && !matches!(wanted, SqlType::Numeric { .. }) {
        return None;
    }
    let scaled = match value {
        ScalarValue::Int16(Some(value)) => (i128::from(*value), 0),
        ScalarValue::Int32(Some(value)) => (i128::from(*value), 0),
        ScalarValue::Int64(Some(value)) => (i128::from(*value), 0),
        ScalarValue::Decimal128(Some(value), _, scale) => (*value, u8::try_from(*scale).ok()?),
        _ => return None,
    };
    let (value, scale) = scaled;
    let target = NumericPrecision::from_sql_type(wanted)?;
    let moved = numeric::rescale(value, scale, target.scale)?;
    let is_exact = numeric::rescale(moved, target.scale, scale.max(target.scale))
        == numeric::rescale(value, scale, scale.max(target.scale));
    if !is_exact || numeric::check_fits(moved, target).is_err() {
        return None;
    }
    let value = match wanted {
        SqlType::Int2 => ScalarValue::Int16(Some(i16::try_from(moved).ok()?)),
        SqlType::Int4 => ScalarValue::Int32(Some(i32::try_from(moved).ok()?)),
        SqlType::Int8 => ScalarValue::Int64(Some(i64::try_from(moved).ok()?)),
        SqlType::Numeric { precision, scale } => {
            ScalarValue::Decimal128(Some(moved), *precision, i8::try_from(*scale).ok()?)
        }
        _ => return None,
    };
    Some(Expr::Literal(value, None))
}

/// Pads a parameter that is compared with `char(n)`, so that the column needs no cast.
fn pad_parameter(parameter: &TypedExpr, wanted: &SqlType, session: &Arc<EvaluationContext>) -> Result<Option<Expr>> {
    let (Expr::Placeholder(_), SqlType::Char(Some(_))) = (&parameter.expr, wanted) else { return Ok(None) };
    let from = match &parameter.sql_type {
        SqlType::Unknown | SqlType::Char(None) => SqlType::Char(None),
        SqlType::Varchar(length) => SqlType::Varchar(*length),
        _ => return Ok(None),
    };
    let known = lower_cast(parameter.expr.clone(), &parameter.sql_type, &from, CastKind::Explicit, session)?;
    lower_cast(known, &from, wanted, CastKind::Comparison, session).map(Some)
}

/// Rewrites a comparison of a date with a constant timestamp to one of dates, so that the column needs no cast and
/// can be pruned.
fn date_with_timestamp(operator: Operator, date: &TypedExpr, timestamp: &TypedExpr) -> Option<Expr> {
    if date.sql_type != SqlType::Date || timestamp.sql_type != SqlType::Timestamp {
        return None;
    }
    let Expr::Literal(ScalarValue::TimestampMicrosecond(Some(us), None), _) = &timestamp.expr else { return None };
    let day = i32::try_from(us.div_euclid(US_PER_DAY)).ok()?;
    let is_midnight = us.rem_euclid(US_PER_DAY) == 0;
    let operator = match operator {
        _ if is_midnight => operator,
        // For a time within a day, that day's date is less and the next one greater.
        Operator::Lt | Operator::LtEq => Operator::LtEq,
        Operator::Gt | Operator::GtEq => Operator::Gt,
        Operator::Eq => return Some(date.expr.clone().is_null().and(lit(ScalarValue::Boolean(None)))),
        _ => return None,
    };
    let day = Expr::Literal(ScalarValue::Date32(Some(day)), None);
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(date.expr.clone()), operator, Box::new(day))))
}
