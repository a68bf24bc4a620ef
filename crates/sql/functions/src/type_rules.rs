//! Rules of type resolution: implicit casts, the type of an untyped literal or parameter, and the common type of
//! several expressions.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use types::numeric::NumericPrecision;
use types::text::{parse_array, parse_numeric_exact};
use types::{Condition, SqlError, SqlResult, SqlType};

#[cfg(test)]
mod tests;

/// PostgreSQL's type categories that type resolution needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Boolean,
    Number,
    String,
    DateTime,
    Timespan,
    Array,
    Unknown,
    Other,
}

/// Returns the category of a type.
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has a category")]
pub(crate) fn category(sql_type: &SqlType) -> Category {
    match sql_type {
        SqlType::Bool => Category::Boolean,
        SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Numeric { .. }
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator => Category::Number,
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Name | SqlType::InternalChar => {
            Category::String
        }
        SqlType::Date | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => Category::DateTime,
        SqlType::Interval => Category::Timespan,
        SqlType::Array(_) => Category::Array,
        SqlType::Unknown => Category::Unknown,
        SqlType::Bytea | SqlType::Uuid | SqlType::Json | SqlType::Jsonb | SqlType::Int2Vector | SqlType::OidVector => {
            Category::Other
        }
    }
}

/// Returns whether the type is the preferred one of its category.
pub(crate) fn is_preferred(sql_type: &SqlType) -> bool {
    matches!(
        sql_type,
        SqlType::Bool | SqlType::Float8 | SqlType::Text | SqlType::TimestampTz | SqlType::Interval | SqlType::Oid
    )
}

/// Returns whether two types are equal apart from their modifiers.
pub fn same_base_type(a: &SqlType, b: &SqlType) -> bool {
    match (a, b) {
        (SqlType::Array(a), SqlType::Array(b)) => same_base_type(a, b),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// Returns whether `from` is cast to `to` implicitly.
pub fn is_implicit(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    if same_base_type(from, to) {
        return true;
    }
    let rank = |sql_type: &SqlType| match sql_type {
        T::Int2 => Some(0),
        T::Int4 => Some(1),
        T::Int8 => Some(2),
        T::Numeric { .. } => Some(3),
        T::Float4 => Some(4),
        T::Float8 => Some(5),
        _ => None,
    };
    if let (Some(from), Some(to)) = (rank(from), rank(to)) {
        return from < to;
    }
    match (from, to) {
        (T::Unknown, _)
        | (T::Char(_) | T::Varchar(_) | T::Name | T::InternalChar, T::Text)
        | (T::Char(_) | T::Text, T::Varchar(_))
        | (T::Text | T::Varchar(_), T::Char(_) | T::Name)
        | (T::Date, T::Timestamp | T::TimestampTz)
        | (T::Timestamp, T::TimestampTz)
        | (T::Time, T::Interval)
        | (T::Int2 | T::Int4 | T::Int8, T::Oid) => true,
        (T::Int2 | T::Int4 | T::Int8 | T::Oid, to) if to.is_reg_type() => true,
        (from, T::Oid) if from.is_reg_type() => true,
        (from, T::Int8) if from.is_oid() => true,
        (T::Array(from), T::Array(to)) => is_implicit(from, to),
        _ => false,
    }
}

/// Operand of type resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand<'a> {
    /// Expression of this type.
    Typed(&'a SqlType),
    /// Text of an untyped literal.
    Literal(&'a str),
    /// Parameter without a type yet.
    Parameter,
    /// NULL, or another untyped expression.
    Null,
}

impl<'a> Operand<'a> {
    /// Classifies `expr` of type `sql_type`.
    pub fn new(expr: &'a Expr, sql_type: &'a SqlType) -> Self {
        if *sql_type != SqlType::Unknown {
            return Operand::Typed(sql_type);
        }
        match expr {
            Expr::Alias(alias) => Operand::new(&alias.expr, sql_type),
            Expr::Literal(value, _) => literal_text(value).map_or(Operand::Null, Operand::Literal),
            Expr::Placeholder(_) => Operand::Parameter,
            _ => Operand::Null,
        }
    }

    /// Creates an operand from its type alone.
    pub fn from_type(sql_type: &'a SqlType) -> Self {
        if *sql_type == SqlType::Unknown { Operand::Null } else { Operand::Typed(sql_type) }
    }
}

fn literal_text(value: &ScalarValue) -> Option<&str> {
    value.try_as_str().flatten()
}

/// Returns the type of an operand next to a value of type `beside`: its own if it has one, else `beside` without its
/// modifier, as in PostgreSQL.
///
/// Kiln's numerics always have a precision and a scale. An untyped number gets the digits it is written with, so that
/// it is exact and the result has the digits that PostgreSQL returns. A parameter gets them with its value.
///
/// # Errors
/// SQLSTATE 22P02 for a literal next to a number that is not a number; 22003 for one with more digits than a numeric
/// can have.
pub fn operand_type_beside(beside: &SqlType, operand: Operand<'_>) -> SqlResult<SqlType> {
    match (operand, beside) {
        (Operand::Typed(sql_type), _) => Ok(sql_type.clone()),
        (Operand::Parameter, beside) => Ok(beside.without_modifier()),
        (Operand::Literal(text), SqlType::Numeric { .. }) => digits_of(text).map(NumericPrecision::sql_type),
        (Operand::Literal(text), SqlType::Array(element)) if matches!(**element, SqlType::Numeric { .. }) => {
            let mut widest = NO_DIGITS;
            parse_array(text, &mut |element| {
                if let Some(element) = element {
                    widest = widest.common_type(digits_of(element)?);
                }
                Ok(())
            })?;
            Ok(SqlType::Array(Box::new(widest.sql_type())))
        }
        (Operand::Null, SqlType::Numeric { .. }) => Ok(NO_DIGITS.sql_type()),
        (Operand::Null, SqlType::Array(element)) if matches!(**element, SqlType::Numeric { .. }) => {
            Ok(SqlType::Array(Box::new(NO_DIGITS.sql_type())))
        }
        (Operand::Literal(_) | Operand::Null, beside) => Ok(beside.without_modifier()),
    }
}

/// Precision and scale of a NULL, which fit into those of any other numeric.
const NO_DIGITS: NumericPrecision = NumericPrecision::new(1, 0);

fn digits_of(number: &str) -> SqlResult<NumericPrecision> {
    let (_, precision, scale) = parse_numeric_exact(number)?;
    Ok(NumericPrecision::new(precision, scale))
}

/// Returns the common type of the operands of a CASE, COALESCE, VALUES or UNION. It has a modifier only if all
/// operands have the same type with that modifier. `context` names the construct in the error message.
///
/// # Errors
/// SQLSTATE 42804 for types without a common one; those of [`operand_type_beside`].
pub fn common_type(operands: &[Operand<'_>], context: &str) -> SqlResult<SqlType> {
    let mut known = operands.iter().filter_map(|operand| match operand {
        Operand::Typed(sql_type) => Some(*sql_type),
        _ => None,
    });
    let Some(first) = known.next() else { return Ok(SqlType::Text) };
    let mut chosen = first.clone();
    for other in known {
        chosen = unify_types(&chosen, other).ok_or_else(|| {
            SqlError::new(
                Condition::DatatypeMismatch,
                format!(
                    "{context} types {} and {} cannot be matched",
                    plain_type_name(&chosen),
                    plain_type_name(other)
                ),
            )
        })?;
    }
    let untyped = operands.iter().filter(|operand| !matches!(operand, Operand::Typed(_)));
    for operand in untyped {
        let taken = operand_type_beside(&chosen, *operand)?;
        chosen = unify_types(&chosen, &taken).unwrap_or(taken);
    }
    Ok(chosen)
}

/// Returns the [`common_type`] of operands given by their types alone.
pub(crate) fn common_type_of(types: &[SqlType], context: &str) -> SqlResult<SqlType> {
    let operands: Vec<Operand<'_>> = types.iter().map(Operand::from_type).collect();
    common_type(&operands, context)
}

/// Returns the common type of two types, if there is one.
pub fn unify_types(a: &SqlType, b: &SqlType) -> Option<SqlType> {
    if a == b {
        return Some(a.clone());
    }
    if (matches!(a, SqlType::Numeric { .. }) || matches!(b, SqlType::Numeric { .. }))
        && let (Some(a), Some(b)) = (NumericPrecision::from_sql_type(a), NumericPrecision::from_sql_type(b))
    {
        return Some(a.common_type(b).sql_type());
    }
    match (a, b) {
        (SqlType::Varchar(_), SqlType::Varchar(_)) => return Some(SqlType::Varchar(None)),
        (SqlType::Char(_), SqlType::Char(_)) => return Some(SqlType::Char(None)),
        (SqlType::Char(_), SqlType::Varchar(_)) | (SqlType::Varchar(_), SqlType::Char(_)) => {
            return Some(SqlType::Text);
        }
        (SqlType::Array(a), SqlType::Array(b)) => {
            return unify_types(a, b).map(|element| SqlType::Array(Box::new(element)));
        }
        _ => {}
    }
    if category(a) != category(b) {
        return None;
    }
    // Numbers widen; if one of two string types casts to the other, the latter wins.
    match (is_implicit(a, b), is_implicit(b, a)) {
        (true, false) => Some(b.clone()),
        (false, true) => Some(a.clone()),
        (true, true) => Some(if is_preferred(b) { b.clone() } else { a.clone() }),
        (false, false) => None,
    }
}

/// Returns a type's name without its modifier, as used in error messages.
pub fn plain_type_name(sql_type: &SqlType) -> String {
    match sql_type {
        SqlType::Numeric { .. } => "numeric".to_owned(),
        SqlType::Varchar(_) => "character varying".to_owned(),
        SqlType::Char(_) => "character".to_owned(),
        SqlType::Array(element) => format!("{}[]", plain_type_name(element)),
        other => other.to_string(),
    }
}
