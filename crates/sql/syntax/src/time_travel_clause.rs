//! Time travel: `AS OF TIMESTAMP time` and `AS OF SNAPSHOT number`.

use sqlparser::ast::TableVersion;
use types::SqlResult;

use super::token_cursor::Cursor;

impl Cursor<'_> {
    /// Parses the time-travel clause if it comes next; `AS of` alone is an alias.
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
