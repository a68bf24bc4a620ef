//! SQL text to statements, in PostgreSQL's grammar. The trees of queries and expressions are `sqlparser`'s, which DataFusion plans.
//!
//! Never looks a name up, and knows neither tables nor plans. Untrusted text never panics and never overflows the stack.
//!
//! Start at `statement.rs`, which chooses the grammar by the first words; most other files have one statement each.
//!
//! - `lex/` makes tokens of the text, `cursor.rs` walks over them, `keyword.rs` has PostgreSQL's words,
//! - `query/` and `expr/` parse what most statements have in them, `text.rs` parses and writes expressions alone,
//! - `data_type.rs` is the grammar of a type's name, `sql_type.rs` the type that is meant, with its limits.

mod alter;
mod as_of;
mod cluster;
mod copy;
mod create;
mod cursor;
mod data_type;
mod delete;
mod drop;
mod explain;
mod expr;
mod external;
mod index;
mod insert;
pub mod keyword;
mod lex;
mod merge;
mod option;
mod query;
mod relation_read;
mod role;
mod sequence;
mod session;
mod set;
mod sql_type;
pub mod statement;
mod table;
mod text;
mod transaction;
mod update;
mod walk;

/// The trees of expressions, as DataFusion plans them.
pub use sqlparser::ast::{Expr, Value};
use types::stack::with_planning_stack;
use types::{Condition, SqlError, SqlResult};

use self::cursor::{Cursor, Origin};
pub use self::expr::balanced;
use self::lex::{Lexeme, Token};
pub use self::query::BALANCED_FROM;
pub use self::relation_read::RelationRead;
pub use self::set::quote_list;
pub use self::sql_type::sql_type;
pub use self::statement::Statement;
pub use self::text::{expr_of, text_of};
pub use self::walk::{AnyVisitor, AnyVisitorMut, Walk};

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
    /// The relations that it reads, as written: WITH queries are among them, functions are not.
    pub relations_read: Vec<RelationRead>,
    /// The first parameter in the text, and its position in the query string in characters from 1.
    parameter: Option<(String, u32)>,
}

impl Parsed {
    /// Whether it ends a transaction block or goes back to a savepoint: what a failed block still takes.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        self.statement.ends_transaction()
    }

    /// Whether to plan it takes no longer than to say what it says: it has no expressions.
    #[must_use]
    pub fn is_light(&self) -> bool {
        match &self.statement {
            Statement::Session(command) => !matches!(command.as_ref(), statement::Command::Declare(_)),
            Statement::Refused(_) => true,
            _ => false,
        }
    }

    /// The prepared statement that EXPLAIN EXECUTE names and its arguments.
    #[must_use]
    pub fn explained_execute(&self) -> Option<(&statement::Explain, &str, &[Expr])> {
        let Statement::Explain(explain) = &self.statement else { return None };
        let Statement::Session(command) = &explain.statement.statement else { return None };
        match command.as_ref() {
            statement::Command::Execute { name, arguments } => Some((explain, name, arguments)),
            _ => None,
        }
    }

    /// Whether it asks for parameters.
    #[must_use]
    pub fn takes_parameters(&self) -> bool {
        self.parameter.is_some()
    }

    /// `42P02` if the statement asks for a parameter: those of a simple query have no values.
    ///
    /// # Errors
    /// The first parameter, unless the statement is PREPARE.
    pub fn check_without_parameters(&self) -> SqlResult<()> {
        let prepares = matches!(&self.statement, Statement::Session(command)
            if matches!(command.as_ref(), statement::Command::Prepare { .. }));
        match &self.parameter {
            Some((name, position)) if !prepares => {
                let message = format!("there is no parameter {name}");
                Err(SqlError::new(Condition::UndefinedParameter, message).with_position(*position))
            }
            _ => Ok(()),
        }
    }
}

fn first_parameter(sql: &str, lexemes: &[Lexeme]) -> Option<(String, u32)> {
    lexemes.iter().find_map(|lexeme| match &lexeme.token {
        Token::Parameter(name) => {
            let before = sql[..lexeme.start].chars().count();
            u32::try_from(before + 1).ok().map(|position| (name.clone(), position))
        }
        _ => None,
    })
}

/// The statements of a query string, in order.
///
/// # Errors
/// What PostgreSQL's grammar has no place for; what it has and Kiln does not becomes [`Statement::Refused`].
pub fn parse(sql: &str) -> SqlResult<Vec<Parsed>> {
    with_planning_stack(|| parse_statements(sql))
}

fn parse_statements(sql: &str) -> SqlResult<Vec<Parsed>> {
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
        let parameter = first_parameter(sql, &lexemes[at..end]);
        let (text, relations_read) = (text.to_owned(), cursor.relations_read);
        statements.push(Parsed { statement, text, offset, relations_read, parameter });
        at = end;
    }
    Ok(statements)
}

/// The lexeme after a statement's last.
fn end_of_statement(lexemes: &[Lexeme], from: usize) -> usize {
    let over = |lexeme: &Lexeme| matches!(lexeme.token, Token::End | Token::Symbol(';'));
    from + lexemes[from..].iter().position(over).unwrap_or(lexemes.len() - from)
}
