//! UPDATE, and its parts that DELETE, MERGE and ON CONFLICT share: the target table, assignments and RETURNING.

use sqlparser::ast::{Expr, Ident, ObjectName, Query, SelectItem, TableWithJoins, With};
use types::{Condition, SqlError, SqlResult};

use super::lex::Token;
use super::token_cursor::Cursor;
use crate::keyword::{KeywordCategory, category};

/// `UPDATE table [AS alias] SET … [FROM …] [WHERE …] [RETURNING …]`.
#[derive(Debug, Clone)]
pub struct Update {
    pub with: Option<With>,
    pub target: ModifiedTable,
    pub assignments: Vec<Assignment>,
    pub from: Vec<TableWithJoins>,
    pub condition: Option<Expr>,
    pub returning: Option<Returning>,
}

/// Target table of a data-modifying statement.
#[derive(Debug, Clone)]
pub struct ModifiedTable {
    pub name: ObjectName,
    pub alias: Option<Ident>,
}

/// `column = value` or `(columns) = values`.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub columns: Vec<Ident>,
    pub value: AssignedValue,
}

/// Assigned value or values.
#[derive(Debug, Clone)]
pub enum AssignedValue {
    /// Value of the only column.
    Single(Box<Expr>),
    /// Values of the columns, one each.
    Row(Vec<Expr>),
    /// Query whose only row has a value for each column.
    Query(Box<Query>),
}

/// `RETURNING [WITH (OLD AS name, NEW AS name)] items`.
#[derive(Debug, Clone)]
pub struct Returning {
    /// Alias for the old rows, other than OLD.
    pub old: Option<Ident>,
    /// Alias for the new rows, other than NEW.
    pub new: Option<Ident>,
    pub items: Vec<SelectItem>,
}

impl Cursor<'_> {
    /// Parses UPDATE, after its WITH.
    pub(super) fn update(&mut self, with: Option<With>) -> SqlResult<Update> {
        self.expect("update")?;
        let target = self.modified_table()?;
        self.expect("set")?;
        let assignments = self.list(Self::set_clause)?;
        let from = if self.eat("from") { self.parse_from_items()? } else { Vec::new() };
        let condition = self.where_clause()?;
        let returning = self.returning()?;
        Ok(Update { with, target, assignments, from, condition, returning })
    }

    /// Parses `[ONLY] name [*] [[AS] alias]`; without inheritance, ONLY has no effect.
    pub(super) fn modified_table(&mut self) -> SqlResult<ModifiedTable> {
        let only = self.eat("only");
        let in_parentheses = only && self.eat_symbol('(');
        let name = self.object_name()?;
        if in_parentheses {
            self.expect_symbol(')')?;
        } else if !only {
            self.eat_operator("*");
        }
        let bare = match self.peek() {
            Token::Quoted(_) => true,
            Token::Word(word) => {
                word != "set"
                    && !matches!(category(word), Some(KeywordCategory::Reserved | KeywordCategory::FunctionOrType))
            }
            _ => false,
        };
        let alias = if self.eat("as") || bare { Some(self.name()?) } else { None };
        Ok(ModifiedTable { name, alias })
    }

    /// Parses the WHERE clause of UPDATE and DELETE.
    pub(super) fn where_clause(&mut self) -> SqlResult<Option<Expr>> {
        if !self.eat("where") {
            return Ok(None);
        }
        if self.next_is("current of") {
            return Err(self.unsupported("WHERE CURRENT OF"));
        }
        self.expr().map(Some)
    }

    /// Parses one assignment of SET.
    pub(super) fn set_clause(&mut self) -> SqlResult<Assignment> {
        if !self.is_symbol('(') {
            let columns = vec![self.set_target()?];
            self.expect_equals()?;
            return Ok(Assignment { columns, value: AssignedValue::Single(Box::new(self.row_value(true)?)) });
        }
        let columns = self.parenthesized(Self::set_target)?;
        self.expect_equals()?;
        let place = self.next_index;
        let is_row = self.next_is("row") && *self.peek_at(1) == Token::Symbol('(');
        let value = if is_row || (self.is_symbol('(') && !self.begins_query_in_parentheses()) {
            self.eat("row");
            AssignedValue::Row(self.parenthesized(|cursor| cursor.row_value(true))?)
        } else {
            match self.expr()? {
                Expr::Subquery(query) => AssignedValue::Query(query),
                other => AssignedValue::Row(vec![other]),
            }
        };
        match &value {
            // A single parenthesized value is no row.
            AssignedValue::Row(values) if values.len() == 1 && !is_row => {
                self.next_index = place;
                let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                Err(self.with_next_position(SqlError::new(Condition::FeatureNotSupported, message)))
            }
            AssignedValue::Row(values) if values.len() != columns.len() => {
                self.next_index = place;
                Err(self.with_next_position(column_count_mismatch()))
            }
            _ => Ok(Assignment { columns, value }),
        }
    }

    fn expect_equals(&mut self) -> SqlResult<()> {
        if self.eat_operator("=") { Ok(()) } else { Err(self.syntax_error()) }
    }

    fn set_target(&mut self) -> SqlResult<Ident> {
        let column = self.name()?;
        if self.is_symbol('[') {
            return Err(self.unsupported("assigning to an element of an array"));
        }
        if self.is_symbol('.') {
            return Err(self.unsupported("assigning to a field of a column"));
        }
        Ok(column)
    }

    /// Parses an optional RETURNING clause.
    pub(super) fn returning(&mut self) -> SqlResult<Option<Returning>> {
        if !self.eat("returning") {
            return Ok(None);
        }
        let (mut old, mut new) = (None, None);
        if self.next_is("with") && *self.peek_at(1) == Token::Symbol('(') {
            self.advance();
            for (is_old, name) in self.parenthesized(Self::returning_name)? {
                let (place, what) = if is_old { (&mut old, "OLD") } else { (&mut new, "NEW") };
                if place.replace(name).is_some() {
                    let message = format!("{what} cannot be specified multiple times");
                    return Err(self.with_next_position(SqlError::new(Condition::SyntaxError, message)));
                }
            }
        }
        Ok(Some(Returning { old, new, items: self.list(Self::select_item)? }))
    }

    fn returning_name(&mut self) -> SqlResult<(bool, Ident)> {
        let is_old = match self.eat_one_of(&["old", "new"]) {
            Some(word) => word == "old",
            None => return Err(self.syntax_error()),
        };
        self.expect("as")?;
        Ok((is_old, self.name()?))
    }
}

/// Returns the error for column and value lists of different lengths (`42601`).
pub fn column_count_mismatch() -> SqlError {
    SqlError::new(Condition::SyntaxError, "number of columns does not match number of values")
}
