//! Assignment casts: the casts that PostgreSQL applies to values stored in columns; all other types are rejected.

use std::sync::Arc;

use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use functions::cast::{CastFunction, CastKind, is_text, lower_cast};
use functions::error::from_datafusion;
use functions::type_rules::{is_implicit, plain_type_name};
use session_context::EvaluationContext;
use types::{Condition, SqlError, SqlResult, SqlType};

#[cfg(test)]
mod tests;

/// Casts `value` of type `from` to the type `to` of `column`.
///
/// # Errors
/// SQLSTATE 42804 if only an explicit cast exists; the value's own error for a literal that does not fit.
pub fn cast_for_assignment(
    value: Expr,
    from: &SqlType,
    column: &str,
    to: &SqlType,
    session: &Arc<EvaluationContext>,
) -> SqlResult<Expr> {
    if !is_assignable(from, to) {
        let message = format!(
            "column \"{column}\" is of type {} but expression is of type {}",
            plain_type_name(to),
            plain_type_name(from)
        );
        return Err(SqlError::new(Condition::DatatypeMismatch, message)
            .with_hint("You will need to rewrite or cast the expression."));
    }
    if from == to && matches!(value, Expr::Placeholder(_)) && is_numeric(to) {
        // A parameter has the digits it was sent with, whatever its type; the cast rounds it, so that CHECKs and
        // RETURNING see the stored value.
        let function = CastFunction::udf(from, to, CastKind::Assignment, session);
        return Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![value])));
    }
    lower_cast(value, from, to, CastKind::Assignment, session).map_err(from_datafusion)
}

fn is_numeric(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Array(element) => is_numeric(element),
        sql_type => matches!(sql_type, SqlType::Numeric { .. }),
    }
}

/// Returns whether there is an assignment cast from `from` to `to`: contexts `i` and `a` of `pg_cast`, and output as
/// text.
pub fn is_assignable(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    let is_number =
        |sql_type: &T| matches!(sql_type, T::Int2 | T::Int4 | T::Int8 | T::Numeric { .. } | T::Float4 | T::Float8);
    if is_implicit(from, to) || is_text(to) || (is_number(from) && is_number(to)) {
        return true;
    }
    match (from, to) {
        (T::Timestamp, T::Date | T::Time)
        | (T::TimestampTz, T::Date | T::Time | T::Timestamp)
        | (T::Interval, T::Time)
        | (T::Json, T::Jsonb)
        | (T::Jsonb, T::Json) => true,
        (T::Array(from), T::Array(to)) => is_assignable(from, to),
        _ => false,
    }
}
