//! COLLATE clauses: all of Kiln's collations compare bytes, so naming one of them changes nothing.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::ast::Value;
use types::{Condition, SqlError, SqlResult};

/// Supported collations, in the schema `pg_catalog`.
const COLLATIONS: [&str; 4] = ["default", "C", "POSIX", "ucs_basic"];

/// Removes a COLLATE of a supported collation.
///
/// # Errors
/// SQLSTATE 42704 for other collations.
pub(super) fn strip(expr: &mut Expr) -> SqlResult<()> {
    let Expr::Collate { expr: inner, collation } = expr else { return Ok(()) };
    let mut parts = collation.0.iter().filter_map(|part| part.as_ident());
    let (schema, name) = match (parts.next(), parts.next()) {
        (Some(schema), Some(name)) => (Some(schema), name),
        (Some(name), None) => (None, name),
        _ => return Ok(()),
    };
    let known = COLLATIONS.contains(&name.value.as_str())
        && schema.is_none_or(|schema| schema.value.eq_ignore_ascii_case("pg_catalog"));
    if !known {
        let message = format!("collation \"{}\" for encoding \"UTF8\" does not exist", name.value);
        return Err(SqlError::new(Condition::UndefinedObject, message));
    }
    let inner = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
    *expr = inner;
    Ok(())
}
