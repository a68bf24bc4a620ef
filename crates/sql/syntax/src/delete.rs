//! DELETE.

use sqlparser::ast::{Expr, TableWithJoins, With};
use types::SqlResult;

use super::token_cursor::Cursor;
use super::update::{ModifiedTable, Returning};

/// `DELETE FROM table [AS alias] [USING …] [WHERE …] [RETURNING …]`.
#[derive(Debug, Clone)]
pub struct Delete {
    pub with: Option<With>,
    pub target: ModifiedTable,
    pub using: Vec<TableWithJoins>,
    pub condition: Option<Expr>,
    pub returning: Option<Returning>,
}

impl Cursor<'_> {
    /// Parses DELETE, after its WITH.
    pub(super) fn delete(&mut self, with: Option<With>) -> SqlResult<Delete> {
        self.expect("delete from")?;
        let target = self.modified_table()?;
        let using = if self.eat("using") { self.parse_from_items()? } else { Vec::new() };
        let condition = self.where_clause()?;
        let returning = self.returning()?;
        Ok(Delete { with, target, using, condition, returning })
    }
}
