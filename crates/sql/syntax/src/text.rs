//! From trees back to text, for what the catalog keeps: views, defaults, checks.

use std::fmt;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Value, ValueWithSpan, VisitorMut};
use types::stack::with_planning_stack;
use types::{SqlError, SqlResult};

use super::cursor::{Cursor, Origin};
use super::lex::lex;
use super::walk::Walk;

/// SQL text that is read back as the same tree.
pub fn text_of<T: Clone + Walk + fmt::Display>(tree: &T) -> String {
    let mut tree = tree.clone();
    // Nothing breaks off the visit.
    let _: ControlFlow<()> = tree.walk_mut(&mut Escaped);
    tree.to_string()
}

/// The expression that a stored text is.
///
/// # Errors
/// `XX000`: it was read when it was stored.
pub fn expr_of(text: &str) -> SqlResult<Expr> {
    with_planning_stack(|| parse_expr(text))
}

fn parse_expr(text: &str) -> SqlResult<Expr> {
    let broken = |error: SqlError| SqlError::internal(format!("the stored expression {text} is broken: {error}"));
    let lexemes = lex(text).map_err(broken)?;
    let mut cursor = Cursor::new(text, &lexemes, 0, Origin { text, offset: 0 });
    let expr = cursor.expr().map_err(broken)?;
    if cursor.is_over() { Ok(expr) } else { Err(broken(cursor.syntax_error())) }
}

/// `sqlparser` prints a string as if its quotes may be escaped already; where it would lose one, E'' says the same.
struct Escaped;

impl VisitorMut for Escaped {
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
