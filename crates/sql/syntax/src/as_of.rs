//! `AS OF TIMESTAMP time`, `AS OF SNAPSHOT number`.

use sqlparser::ast::TableVersion;
use types::SqlResult;

use super::cursor::Cursor;

impl Cursor<'_> {
    /// The clause, if it comes next; `AS of` alone is an alias.
    pub(super) fn as_of(&mut self) -> SqlResult<Option<TableVersion>> {
        if self.eat("as of timestamp") {
            return Ok(Some(TableVersion::TimestampAsOf(self.expr()?)));
        }
        if self.eat("as of snapshot") {
            return Ok(Some(TableVersion::VersionAsOf(self.expr()?)));
        }
        Ok(None)
    }
}
