//! SQL parser: turns query text into statements, in PostgreSQL's grammar.
//!
//! Queries and expressions are `sqlparser` syntax trees, which DataFusion plans. The parser resolves no names and knows
//! neither tables nor plans.
//! Untrusted text never causes a panic or a stack overflow.
//!
//! Reading order:
//!
//! - `statement.rs`: the [`Statement`] enum and the choice of a grammar by the first keywords; most other files hold
//!   one statement each,
//! - `lex/`: the lexer; `token_cursor.rs`: the position in the tokens; `keyword.rs`: PostgreSQL's keywords,
//! - `query/` and `expr/`: queries and expressions; `expr_text.rs`: expressions on their own, parsed from text and written
//!   as text,
//! - `data_type.rs`: the grammar of type names; `sql_type_conversion.rs`: the [`types::SqlType`] that a type name means, with its
//!   limits,
//! - `tree_visitor.rs`: visitors over statements.

mod alter;
mod cluster;
mod copy;
mod create;
mod create_index;
mod create_table;
mod data_type;
mod delete;
mod drop;
mod explain;
mod expr;
mod expr_text;
mod external_table;
mod insert;
pub mod keyword;
mod lex;
mod merge;
mod query;
mod relation_read;
mod role;
mod sequence;
mod session_statement;
mod set_show_reset;
mod sql_type_conversion;
pub mod statement;
mod statement_option;
mod time_travel_clause;
mod token_cursor;
mod transaction;
mod tree_visitor;
mod update;

/// Syntax trees of expressions, as DataFusion plans them.
pub use sqlparser::ast::{Expr, Value};
use types::stack_limit::with_planning_stack;
use types::{Condition, SqlError, SqlResult};

pub use self::expr::balance_operands;
pub use self::expr_text::{parse_stored_expr, to_sql_text};
use self::lex::{Lexeme, Token};
pub use self::query::UNION_BALANCED_MIN;
pub use self::relation_read::RelationRead;
pub use self::set_show_reset::quote_list;
pub use self::sql_type_conversion::sql_type;
pub use self::statement::Statement;
use self::token_cursor::{Cursor, StatementOrigin};
pub use self::tree_visitor::{ErasedVisitor, ErasedVisitorMut, Walk};

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;

/// One parsed statement of a query string.
#[derive(Debug, Clone)]
pub struct ParsedStatement {
    pub statement: Statement,
    /// Exact text of the statement; spans in the statement are positions in this text.
    pub text: String,
    /// Offset of the text in the query string, in characters.
    pub offset: usize,
    /// Relations that the statement reads, as written: names of WITH queries are included, functions are not.
    pub relations_read: Vec<RelationRead>,
    /// First parameter in the text, with its position in the query string in characters from 1.
    first_parameter: Option<(String, u32)>,
}

impl ParsedStatement {
    /// Whether the statement ends a transaction block or rolls back to a savepoint: the only statements that a failed
    /// block accepts.
    #[must_use]
    pub fn ends_transaction(&self) -> bool {
        self.statement.ends_transaction()
    }

    /// Whether the statement has no expressions, so that planning it takes no longer than describing its result.
    #[must_use]
    pub fn has_no_expressions(&self) -> bool {
        match &self.statement {
            Statement::Session(command) => !matches!(command.as_ref(), statement::SessionStatement::Declare(_)),
            Statement::Unsupported(_) => true,
            _ => false,
        }
    }

    /// Returns the prepared statement that EXPLAIN EXECUTE names, and its arguments.
    #[must_use]
    pub fn explained_execute(&self) -> Option<(&statement::Explain, &str, &[Expr])> {
        let Statement::Explain(explain) = &self.statement else { return None };
        let Statement::Session(command) = &explain.statement.statement else { return None };
        match command.as_ref() {
            statement::SessionStatement::Execute { name, arguments } => Some((explain, name, arguments)),
            _ => None,
        }
    }

    /// Whether the statement has parameters.
    #[must_use]
    pub fn takes_parameters(&self) -> bool {
        self.first_parameter.is_some()
    }

    /// Checks that the statement has no parameters, as in a simple query, which cannot pass values for them.
    ///
    /// # Errors
    /// `42P02` at the first parameter, unless the statement is PREPARE.
    pub fn check_without_parameters(&self) -> SqlResult<()> {
        let prepares = matches!(&self.statement, Statement::Session(command)
            if matches!(command.as_ref(), statement::SessionStatement::Prepare { .. }));
        match &self.first_parameter {
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

/// Parses a query string into its statements, in order.
///
/// # Errors
/// `42601` for text that is not in PostgreSQL's grammar. A statement that PostgreSQL has and Kiln does not have becomes
/// [`Statement::Unsupported`].
pub fn parse(sql: &str) -> SqlResult<Vec<ParsedStatement>> {
    with_planning_stack(|| parse_statements(sql))
}

fn parse_statements(sql: &str) -> SqlResult<Vec<ParsedStatement>> {
    let lexemes = lex::lex(sql)?;
    let mut statements = Vec::new();
    let (mut counted, mut offset) = (0, 0);
    let mut at = 0;
    while lexemes[at].token != Token::End {
        if lexemes[at].token == Token::Symbol(';') {
            at += 1;
            continue;
        }
        let end = find_statement_end(&lexemes, at);
        let start = lexemes[at].start;
        offset += sql[counted..start].chars().count();
        counted = start;
        let text = &sql[start..lexemes[end - 1].end];
        let mut cursor = Cursor::new(sql, &lexemes, at, StatementOrigin { text, offset });
        let statement = match cursor.statement_to_end() {
            Err(error) if error.condition == Condition::FeatureNotSupported => Statement::Unsupported(Box::new(error)),
            other => other?,
        };
        let parameter = first_parameter(sql, &lexemes[at..end]);
        let (text, relations_read) = (text.to_owned(), cursor.relations_read);
        statements.push(ParsedStatement { statement, text, offset, relations_read, first_parameter: parameter });
        at = end;
    }
    Ok(statements)
}

/// Returns the index of the first lexeme after a statement.
fn find_statement_end(lexemes: &[Lexeme], from: usize) -> usize {
    let over = |lexeme: &Lexeme| matches!(lexeme.token, Token::End | Token::Symbol(';'));
    from + lexemes[from..].iter().position(over).unwrap_or(lexemes.len() - from)
}
