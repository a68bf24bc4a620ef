//! Option lists: `(name value, …)` of COPY and EXPLAIN, and `(name = value, …)` of storage parameters.

use sqlparser::ast::Ident;
use types::SqlResult;

use super::lex::Token;
use super::token_cursor::Cursor;

/// One option of a list.
#[derive(Debug, Clone)]
pub struct StatementOption {
    /// Name of the option, in lower case unless it is quoted.
    pub name: Ident,
    pub value: Option<OptionValue>,
}

/// Value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// Unquoted word: `csv`, `on`.
    Word(String),
    Text(String),
    /// Number as written, with its sign.
    Number(String),
    /// `*`, for all columns.
    Star,
    /// List in parentheses: `(a, b)`.
    List(Vec<String>),
}

impl OptionValue {
    /// Returns a word, string or number as text, as PostgreSQL does where an option takes text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Word(text) | Self::Text(text) | Self::Number(text) => Some(text),
            Self::Star | Self::List(_) => None,
        }
    }
}

impl Cursor<'_> {
    /// Parses `(name value, …)`.
    pub(super) fn option_list(&mut self) -> SqlResult<Vec<StatementOption>> {
        self.parenthesized(|cursor| {
            let name = cursor.label()?;
            let value = cursor.option_value()?;
            Ok(StatementOption { name, value })
        })
    }

    /// Parses `(name = value, …)`; a name may be qualified by one word and a dot.
    pub(super) fn storage_parameters(&mut self) -> SqlResult<Vec<StatementOption>> {
        self.parenthesized(|cursor| {
            let mut name = cursor.label()?;
            if cursor.eat_symbol('.') {
                name.value = format!("{}.{}", name.value, cursor.label()?.value);
            }
            let value = if cursor.eat_operator("=") {
                Some(cursor.option_value()?.ok_or_else(|| cursor.syntax_error())?)
            } else {
                None
            };
            Ok(StatementOption { name, value })
        })
    }

    fn option_value(&mut self) -> SqlResult<Option<OptionValue>> {
        let value = match self.peek() {
            Token::Symbol(',' | ')') => return Ok(None),
            Token::Symbol('(') => {
                return self.parenthesized(Self::list_item).map(|items| Some(OptionValue::List(items)));
            }
            Token::Operator(operator) if operator == "*" => OptionValue::Star,
            Token::Operator(operator) if matches!(operator.as_str(), "-" | "+") => {
                let sign = if operator == "-" { "-" } else { "" };
                self.advance();
                match self.peek() {
                    Token::Integer(digits) | Token::Decimal(digits) => OptionValue::Number(format!("{sign}{digits}")),
                    _ => return Err(self.syntax_error()),
                }
            }
            Token::Integer(digits) | Token::Decimal(digits) => OptionValue::Number(digits.clone()),
            Token::Text(text) => OptionValue::Text(text.clone()),
            Token::Word(word) => OptionValue::Word(word.clone()),
            Token::Quoted(name) => OptionValue::Word(name.clone()),
            _ => return Err(self.syntax_error()),
        };
        self.advance();
        Ok(Some(value))
    }

    fn list_item(&mut self) -> SqlResult<String> {
        match self.peek() {
            Token::Text(_) => self.text(),
            _ => self.label().map(|label| label.value),
        }
    }
}
