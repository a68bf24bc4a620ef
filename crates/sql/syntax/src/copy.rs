//! COPY, with the options of both of PostgreSQL's syntaxes.

use sqlparser::ast::{Expr, Ident, ObjectName, Query};
use types::SqlResult;

use super::lex::Token;
use super::statement_option::{OptionValue, StatementOption};
use super::token_cursor::Cursor;

/// `COPY subject FROM | TO endpoint WITH (options) [WHERE filter]`.
#[derive(Debug, Clone)]
pub struct Copy {
    pub subject: CopySubject,
    pub direction: CopyDirection,
    pub endpoint: CopyEndpoint,
    /// Options under the names of the parenthesized syntax: `CSV HEADER` is stored as `format csv, header`.
    pub options: Vec<StatementOption>,
    /// Condition of COPY FROM that the loaded rows meet.
    pub filter: Option<Box<Expr>>,
}

/// Table or query that is copied.
#[derive(Debug, Clone)]
pub enum CopySubject {
    /// Table and its columns; an empty list means all columns.
    Table {
        name: ObjectName,
        columns: Vec<Ident>,
    },
    Query(Box<Query>),
}

/// Direction of a COPY: into the table or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyDirection {
    From,
    To,
}

/// External end of a COPY: the client, a file or a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyEndpoint {
    /// STDIN or STDOUT; as in PostgreSQL, either word is accepted in both directions.
    Client,
    /// Path or URL.
    File(String),
    Program(String),
}

impl Cursor<'_> {
    pub(super) fn copy(&mut self) -> SqlResult<Copy> {
        self.expect("copy")?;
        let mut options = Vec::new();
        if self.next_is("binary") && matches!(self.peek_at(1), Token::Word(_) | Token::Quoted(_)) {
            self.advance();
            options.push(option("format", Some(OptionValue::Word("binary".to_owned()))));
        }
        let subject = if self.eat_symbol('(') {
            if matches!(self.next_word(), Some("insert" | "update" | "delete" | "merge")) {
                return Err(self.unsupported("COPY of a statement with RETURNING"));
            }
            let query = self.query()?;
            self.expect_symbol(')')?;
            CopySubject::Query(query)
        } else {
            let name = self.object_name()?;
            CopySubject::Table { name, columns: self.optional_names()? }
        };
        let direction = match (&subject, self.next_word()) {
            (CopySubject::Table { .. }, Some("from")) => CopyDirection::From,
            (_, Some("to")) => CopyDirection::To,
            _ => return Err(self.syntax_error()),
        };
        self.advance();
        if let (CopySubject::Table { name, .. }, CopyDirection::To) = (&subject, direction) {
            self.record_read(name, None);
        }
        let place = self.copy_endpoint()?;
        if self.eat("using delimiters") || self.eat("delimiters") {
            options.push(option("delimiter", Some(OptionValue::Text(self.text()?))));
        }
        self.eat("with");
        if self.is_symbol('(') {
            options.extend(self.option_list()?);
        } else {
            self.legacy_copy_options(&mut options)?;
        }
        let filter = if self.next_is("where") {
            if direction == CopyDirection::To {
                let message = "WHERE clause not allowed with COPY TO";
                return Err(self.with_next_position(types::SqlError::new(types::Condition::SyntaxError, message)));
            }
            self.advance();
            Some(Box::new(self.expr()?))
        } else {
            None
        };
        Ok(Copy { subject, direction, endpoint: place, options, filter })
    }

    fn copy_endpoint(&mut self) -> SqlResult<CopyEndpoint> {
        if self.eat_one_of(&["stdin", "stdout"]).is_some() {
            return Ok(CopyEndpoint::Client);
        }
        if self.eat("program") {
            return self.text().map(CopyEndpoint::Program);
        }
        self.text().map(CopyEndpoint::File)
    }

    /// Parses the syntax without parentheses: `CSV HEADER DELIMITER AS ','`.
    fn legacy_copy_options(&mut self, options: &mut Vec<StatementOption>) -> SqlResult<()> {
        loop {
            let format = |name: &str| option("format", Some(OptionValue::Word(name.to_owned())));
            let option = if self.eat("binary") {
                format("binary")
            } else if self.eat("csv") {
                format("csv")
            } else if self.eat("freeze") {
                option("freeze", None)
            } else if self.eat("header") {
                option("header", None)
            } else if self.eat("force quote") {
                option("force_quote", Some(self.forced_columns()?))
            } else if self.eat("force not null") {
                option("force_not_null", Some(self.forced_columns()?))
            } else if self.eat("force null") {
                option("force_null", Some(self.forced_columns()?))
            } else if let Some(name) = self.eat_one_of(&["delimiter", "null", "quote", "escape", "encoding"]) {
                if name != "encoding" {
                    self.eat("as");
                }
                option(name, Some(OptionValue::Text(self.text()?)))
            } else {
                return Ok(());
            };
            options.push(option);
        }
    }

    fn forced_columns(&mut self) -> SqlResult<OptionValue> {
        if self.eat_operator("*") {
            return Ok(OptionValue::Star);
        }
        let names = self.list(Self::name)?;
        Ok(OptionValue::List(names.into_iter().map(|name| name.value).collect()))
    }
}

fn option(name: &str, value: Option<OptionValue>) -> StatementOption {
    StatementOption { name: Ident::new(name), value }
}
