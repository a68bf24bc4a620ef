//! `AS OF TIMESTAMP '…'`, `AS OF SNAPSHOT n`.

use datafusion::sql::sqlparser::ast::{Expr, TableVersion, Value};
use types::SqlResult;

use super::cursor::Cursor;
use super::lex::Token;

impl Cursor<'_> {
    /// The clause, if it comes next; `AS of` alone is an alias.
    pub(super) fn as_of(&mut self) -> SqlResult<Option<TableVersion>> {
        if self.eat("as of timestamp") {
            let text = self.text()?;
            return Ok(Some(TableVersion::TimestampAsOf(Expr::value(Value::SingleQuotedString(text)))));
        }
        if self.eat("as of snapshot") {
            let Token::Integer(digits) = self.peek() else { return Err(self.syntax_error()) };
            self.advance();
            let number = match digits.parse() {
                Ok(number) => Value::Number(number, false),
                Err(_) => return Err(self.syntax_error()),
            };
            return Ok(Some(TableVersion::VersionAsOf(Expr::value(number))));
        }
        Ok(None)
    }
}
