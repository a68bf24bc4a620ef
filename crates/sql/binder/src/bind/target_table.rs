//! Target table of a statement.

use std::sync::Arc;

use catalog::Table;
use datafusion::sql::sqlparser::ast::Ident;

use super::modification_columns::ModificationColumns;

/// Target table of a statement, with its alias in the statement.
pub(crate) struct TargetTable<'a> {
    pub(crate) table: &'a Arc<Table>,
    /// Name of its schema.
    pub(crate) schema: &'a str,
    pub(crate) alias: Option<&'a Ident>,
}

impl TargetTable<'_> {
    /// Returns the names of the columns that the statement's plan adds to the table's.
    pub(crate) fn added_columns(&self) -> ModificationColumns {
        ModificationColumns::for_table(self.table)
    }
}
