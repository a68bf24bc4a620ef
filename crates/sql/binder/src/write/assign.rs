//! Values on their way into columns: the casts that PostgreSQL makes by itself there, and its refusal of all others.

use std::sync::Arc;

use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use functions::cast::{CastFunction, CastKind, is_text, lower};
use functions::error::from_datafusion;
use functions::type_rules::{is_implicit, plain};
use session_context::Session;
use types::{Condition, SqlError, SqlResult, SqlType};

#[cfg(test)]
mod tests;

/// `value` of type `from` as what `column` of type `to` stores.
///
/// # Errors
/// `42804` where only an explicit cast goes from one type to the other; the value's own error for a literal that does not fit.
pub fn assign(value: Expr, from: &SqlType, column: &str, to: &SqlType, session: &Arc<Session>) -> SqlResult<Expr> {
    if !is_assignable(from, to) {
        let message = format!("column \"{column}\" is of type {} but expression is of type {}", plain(to), plain(from));
        return Err(SqlError::new(Condition::DatatypeMismatch, message)
            .with_hint("You will need to rewrite or cast the expression."));
    }
    if from == to && matches!(value, Expr::Placeholder(_)) && is_numeric(to) {
        // It comes with the digits that it was sent with, whatever its type: CHECKs and RETURNING see what is stored.
        let function = CastFunction::udf(from, to, CastKind::Assignment, session);
        return Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![value])));
    }
    lower(value, from, to, CastKind::Assignment, session).map_err(from_datafusion)
}

fn is_numeric(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Array(element) => is_numeric(element),
        sql_type => matches!(sql_type, SqlType::Numeric { .. }),
    }
}

/// Whether a value of `from` becomes a `to` where it is stored into one: `pg_cast`'s contexts `i` and `a`, and output as text.
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
