//! CREATE INDEX.

use sqlparser::ast::{Ident, ObjectName};
use types::SqlResult;

use super::lex::Token;
use super::statement_option::StatementOption;
use super::token_cursor::Cursor;

/// `CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON table [USING btree]
/// (columns) [INCLUDE (columns)] [WITH (…)]`.
#[derive(Debug, Clone)]
pub struct CreateIndex {
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub name: Option<Ident>,
    pub table: ObjectName,
    pub columns: Vec<IndexColumn>,
    pub included: Vec<Ident>,
    pub parameters: Vec<StatementOption>,
}

/// One column of an index key.
#[derive(Debug, Clone)]
pub struct IndexColumn {
    pub column: Ident,
    pub collation: Option<ObjectName>,
    /// Operator class.
    pub operator_class: Option<ObjectName>,
    pub descending: bool,
    /// Position of NULLs, as written or by PostgreSQL's default: last for ASC, first for DESC.
    pub nulls_first: bool,
}

impl Cursor<'_> {
    /// Parses CREATE INDEX, after CREATE.
    pub(super) fn create_index(&mut self) -> SqlResult<CreateIndex> {
        let unique = self.eat("unique");
        self.expect("index")?;
        let concurrently = self.eat("concurrently");
        let if_not_exists = self.eat("if not exists");
        let name = if !if_not_exists && self.next_is("on") { None } else { Some(self.name()?) };
        self.expect("on")?;
        self.eat("only");
        let table = self.object_name()?;
        if self.eat("using") {
            let method = self.name()?;
            if method.value != "btree" {
                return Err(self.unsupported(&format!("an index of the access method {}", method.value)));
            }
        }
        let columns = self.parenthesized(Self::index_column)?;
        let included = if self.eat("include") { self.parenthesized(Self::name)? } else { Vec::new() };
        if !self.eat("nulls distinct") && self.next_is("nulls not distinct") {
            return Err(self.unsupported("NULLS NOT DISTINCT"));
        }
        let parameters = if self.eat("with") { self.storage_parameters()? } else { Vec::new() };
        if self.next_is("tablespace") {
            return Err(self.unsupported("TABLESPACE of an index"));
        }
        if self.next_is("where") {
            return Err(self.unsupported("WHERE of an index"));
        }
        let create = CreateIndex { unique, concurrently, if_not_exists, name, table, columns, included, parameters };
        Ok(create)
    }

    fn index_column(&mut self) -> SqlResult<IndexColumn> {
        if self.is_symbol('(') || *self.peek_at(1) == Token::Symbol('(') {
            return Err(self.unsupported("an expression in an index"));
        }
        let column = self.name()?;
        let collation = if self.eat("collate") {
            let first = self.label()?;
            Some(self.qualified_name(first)?)
        } else {
            None
        };
        let has_order_words = ["asc", "desc", "nulls"].iter().any(|word| self.next_is(word));
        let operators = match self.peek() {
            Token::Word(_) | Token::Quoted(_) if !has_order_words => Some(self.object_name()?),
            _ => None,
        };
        if operators.is_some() && self.is_symbol('(') {
            return Err(self.unsupported("parameters of an operator class"));
        }
        let descending = self.eat_one_of(&["asc", "desc"]) == Some("desc");
        let nulls_first = self.eat("nulls first") || (!self.eat("nulls last") && descending);
        Ok(IndexColumn { column, collation, operator_class: operators, descending, nulls_first })
    }
}
