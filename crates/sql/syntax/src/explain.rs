//! EXPLAIN.

use sqlparser::ast::Ident;
use types::SqlResult;

use super::ParsedStatement;
use super::statement::Statement;
use super::statement_option::StatementOption;
use super::token_cursor::Cursor;

/// `EXPLAIN [(options)] statement`.
#[derive(Debug, Clone)]
pub struct Explain {
    /// Options under the names of the parenthesized syntax, as written.
    pub options: Vec<StatementOption>,
    pub statement: Box<ParsedStatement>,
}

impl Cursor<'_> {
    pub(super) fn explain(&mut self) -> SqlResult<Statement> {
        self.expect("explain")?;
        let mut options = Vec::new();
        if self.is_symbol('(') && !self.begins_query_in_parentheses() {
            options = self.option_list()?;
        } else {
            // ANALYZE and VERBOSE are accepted in this order only, as in PostgreSQL.
            for words in [&["analyze", "analyse"][..], &["verbose"]] {
                if let Some(word) = self.eat_one_of(words) {
                    options.push(StatementOption { name: Ident::new(word), value: None });
                }
            }
        }
        let explainable = self.is_symbol('(')
            || matches!(
                self.next_word(),
                Some(
                    "select"
                        | "values"
                        | "table"
                        | "with"
                        | "insert"
                        | "update"
                        | "delete"
                        | "merge"
                        | "create"
                        | "copy"
                        | "execute"
                        | "declare"
                        | "refresh"
                )
            );
        if !explainable {
            return Err(self.syntax_error());
        }
        let statement = self.parse_nested(Self::inner_statement)?;
        Ok(Statement::Explain(Box::new(Explain { options, statement })))
    }

    /// Parses a statement inside another statement; its text is that of the outer one.
    pub(super) fn inner_statement(&mut self) -> SqlResult<Box<ParsedStatement>> {
        let before = self.relations_read.len();
        let statement = self.statement()?;
        let (text, offset) = (self.origin.text.to_owned(), self.origin.offset);
        let relations_read = self.relations_read[before..].to_vec();
        Ok(Box::new(ParsedStatement { statement, text, offset, relations_read, first_parameter: None }))
    }
}
