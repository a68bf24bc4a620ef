//! Expressions and queries as SQL text in the catalog (views, defaults, checks), and stored expressions parsed from it.

use std::fmt;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Value, ValueWithSpan, VisitorMut};
use types::stack_limit::with_planning_stack;
use types::{SqlError, SqlResult};

use super::lex::lex;
use super::token_cursor::{Cursor, StatementOrigin};
use super::tree_visitor::Walk;

/// Formats a tree as SQL text that parses to the same tree.
pub fn to_sql_text<T: Clone + Walk + fmt::Display>(tree: &T) -> String {
    let mut tree = tree.clone();
    // The visitor never breaks.
    let _: ControlFlow<()> = tree.walk_mut(&mut QuoteEscaper);
    tree.to_string()
}

/// Parses an expression that is stored in the catalog.
///
/// # Errors
/// `XX000` if the text does not parse, although it parsed when it was stored.
pub fn parse_stored_expr(text: &str) -> SqlResult<Expr> {
    with_planning_stack(|| parse_expr(text))
}

fn parse_expr(text: &str) -> SqlResult<Expr> {
    let broken = |error: SqlError| {
        SqlError::internal(format!("the expression {text}, stored in the catalog, does not parse: {error}"))
    };
    let lexemes = lex(text).map_err(broken)?;
    let mut cursor = Cursor::new(text, &lexemes, 0, StatementOrigin { text, offset: 0 });
    let expr = cursor.expr().map_err(broken)?;
    if cursor.is_at_end() { Ok(expr) } else { Err(broken(cursor.syntax_error())) }
}

/// Visitor that turns strings into E'' strings where `sqlparser` would drop a quote: it prints a string as if its
/// quotes might be escaped already.
struct QuoteEscaper;

impl VisitorMut for QuoteEscaper {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::SingleQuotedString(text) = &mut value.value
            && (text.contains("''") || text.contains("\\'"))
        {
            value.value = Value::EscapedStringLiteral(std::mem::take(text));
        }
        ControlFlow::Continue(())
    }
}
