//! CREATE INDEX.

use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use types::SqlResult;

use super::cursor::Cursor;
use super::lex::Token;
use super::statement::Statement;

/// `CREATE [UNIQUE] INDEX [IF NOT EXISTS] [name] ON table [USING btree] (columns)`.
#[derive(Debug, Clone)]
pub struct CreateIndex {
    pub unique: bool,
    pub if_not_exists: bool,
    pub name: Option<Ident>,
    pub table: ObjectName,
    pub columns: Vec<Ident>,
}

impl Cursor<'_> {
    /// CREATE INDEX, after CREATE.
    pub(super) fn create_index(&mut self) -> SqlResult<Statement> {
        let unique = self.eat("unique");
        self.expect("index")?;
        // Nothing else changes the table meanwhile, one way or the other.
        self.eat("concurrently");
        let if_not_exists = self.eat("if not exists");
        let name = if !if_not_exists && self.is("on") { None } else { Some(self.name()?) };
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
        let options = ["include", "nulls", "with", "tablespace", "where"];
        if let Some(option) = options.iter().find(|option| self.is(option)) {
            return Err(self.unsupported(&format!("{} of an index", option.to_uppercase())));
        }
        Ok(Statement::CreateIndex(Box::new(CreateIndex { unique, if_not_exists, name, table, columns })))
    }

    fn index_column(&mut self) -> SqlResult<Ident> {
        if self.is_symbol('(') || *self.peek_at(1) == Token::Symbol('(') {
            return Err(self.unsupported("an expression in an index"));
        }
        let column = self.name()?;
        self.eat("asc");
        self.eat("nulls last");
        if self.is_symbol(',') || self.is_symbol(')') {
            return Ok(column);
        }
        match self.peek() {
            Token::Word(_) | Token::Quoted(_) => {
                Err(self.unsupported("an operator class, a collation or another order than ascending in an index"))
            }
            _ => Err(self.syntax_error()),
        }
    }
}
