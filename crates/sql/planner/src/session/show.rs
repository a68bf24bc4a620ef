//! SHOW, planned as a query over constants.

use binder::{Binder, QueryPlan};
use datafusion::sql::sqlparser::ast::Query;
use settings::Settings;
use syntax::{Statement, parse};
use types::{SqlError, SqlResult};

/// Plans SHOW of one setting: one row with one column, named after the setting.
///
/// # Errors
/// `42704` for an unknown setting.
pub(super) fn show_setting(binder: &Binder<'_>, name: &str) -> SqlResult<QueryPlan> {
    let context = binder.context();
    let (column, value) = match name.to_ascii_lowercase().as_str() {
        "role" if context.role.oid == context.session_role.oid => ("role".to_owned(), "none".to_owned()),
        "role" => ("role".to_owned(), context.role.name.clone()),
        "session_authorization" => ("session_authorization".to_owned(), context.session_role.name.clone()),
        "is_superuser" => {
            let value = if context.session_role.superuser { "on" } else { "off" };
            ("is_superuser".to_owned(), value.to_owned())
        }
        _ => (Settings::canonical_name(name)?, context.settings.get(name)?),
    };
    let text = format!("SELECT {}::text AS \"{}\"", literal(&value), column.replace('"', "\"\""));
    binder.plan_query(&*parse_query(&text)?, &[])
}

/// Plans SHOW ALL: name, value and description of every setting.
///
/// # Errors
/// None that a client could cause.
pub(super) fn show_all(binder: &Binder<'_>) -> SqlResult<QueryPlan> {
    let rows = binder.context().settings.all();
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("({}, {}, {})", literal(&row.name), literal(&row.display_value), literal(row.description)))
        .collect();
    let text = format!("SELECT * FROM (VALUES {}) AS settings (name, setting, description)", rows.join(", "));
    binder.plan_query(&*parse_query(&text)?, &[])
}

fn parse_query(text: &str) -> SqlResult<Box<Query>> {
    match parse(text)?.pop().map(|parsed| parsed.statement) {
        Some(Statement::Query(query)) => Ok(query),
        _ => Err(SqlError::internal("the query that SHOW was rewritten to did not parse as a query")),
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
