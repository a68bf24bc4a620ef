//! SQL text to statements: `lex/` makes tokens, `statement.rs` chooses the grammar by the first words, the other files have one
//! statement or one part of them each. The grammar is PostgreSQL's, the trees of queries and expressions are `sqlparser`'s,
//! which DataFusion reads.

mod alter;
mod copy;
mod create;
mod cursor;
mod data_type;
mod drop;
mod explain;
mod expr;
mod insert;
mod lex;
mod option;
mod query;
mod role;
mod session;
mod set;
pub mod statement;
mod table;
mod text;
mod transaction;

use types::{Condition, SqlResult};

use self::cursor::Cursor;
use self::lex::{Lexeme, Token};
pub use self::statement::Statement;
pub(crate) use self::text::{expr_of, text_of};

#[cfg(test)]
mod soup_tests;
#[cfg(test)]
mod tests;

/// One statement of a query string.
#[derive(Debug, Clone)]
pub struct Parsed {
    pub statement: Statement,
    /// Its exact text; names in the statement have their places in it.
    pub text: String,
    /// Where the text begins in the query string, in characters.
    pub offset: usize,
}

impl Parsed {
    /// Whether it ends a transaction block or goes back to a savepoint: what a failed block still takes.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        self.statement.ends_transaction()
    }
}

/// The statements of a query string, in order.
///
/// # Errors
/// What PostgreSQL's grammar has no place for; what it has and Kiln does not becomes [`Statement::Refused`].
pub(crate) fn parse(sql: &str) -> SqlResult<Vec<Parsed>> {
    let lexemes = lex::lex(sql)?;
    let mut statements = Vec::new();
    let (mut counted, mut offset) = (0, 0);
    let mut at = 0;
    while lexemes[at].token != Token::End {
        if lexemes[at].token == Token::Symbol(';') {
            at += 1;
            continue;
        }
        let end = end_of_statement(&lexemes, at);
        let start = lexemes[at].start;
        offset += sql[counted..start].chars().count();
        counted = start;
        let text = &sql[start..lexemes[end - 1].end];
        let mut cursor = Cursor::new(sql, &lexemes, at, Origin { text, offset });
        let statement = match cursor.whole_statement() {
            Err(error) if error.condition == Condition::FeatureNotSupported => Statement::Refused(Box::new(error)),
            other => other?,
        };
        statements.push(Parsed { statement, text: text.to_owned(), offset });
        at = end;
    }
    Ok(statements)
}

/// Where a statement comes from.
#[derive(Debug, Clone, Copy)]
struct Origin<'a> {
    text: &'a str,
    /// In characters.
    offset: usize,
}

/// The lexeme after a statement's last.
fn end_of_statement(lexemes: &[Lexeme], from: usize) -> usize {
    let over = |lexeme: &Lexeme| matches!(lexeme.token, Token::End | Token::Symbol(';'));
    from + lexemes[from..].iter().position(over).unwrap_or(lexemes.len() - from)
}
