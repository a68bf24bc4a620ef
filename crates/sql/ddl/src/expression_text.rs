//! Expressions in the catalog: SQL text of checks and defaults.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, VisitorMut};
use syntax::{Walk, parse_stored_expr, to_sql_text};
use types::SqlResult;

use super::name_resolution;

/// Renames a column in the text of an expression over one table's columns.
///
/// # Errors
/// `XX000` if the text does not parse.
pub(super) fn rename_column(text: &str, from: &str, to: &str) -> SqlResult<String> {
    let mut expression = parse_stored_expr(text)?;
    // The visitor never breaks.
    let _: ControlFlow<()> = expression.walk_mut(&mut ExpressionColumnRenamer { from, to });
    Ok(to_sql_text(&expression))
}

struct ExpressionColumnRenamer<'a> {
    from: &'a str,
    to: &'a str,
}

impl VisitorMut for ExpressionColumnRenamer<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let column = match expr {
            Expr::Identifier(column) => Some(column),
            Expr::CompoundIdentifier(parts) => parts.last_mut(),
            _ => None,
        };
        if let Some(column) = column.filter(|column| column.value == self.from) {
            *column = name_resolution::ident(self.to);
        }
        ControlFlow::Continue(())
    }
}
