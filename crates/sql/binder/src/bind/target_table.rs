//! Target table of a statement.

use std::sync::Arc;

use catalog::Table;
use datafusion::sql::sqlparser::ast::Ident;

/// Target table of a statement, with its alias in the statement.
pub(crate) struct TargetTable<'a> {
    pub(crate) table: &'a Arc<Table>,
    /// Name of its schema.
    pub(crate) schema: &'a str,
    pub(crate) alias: Option<&'a Ident>,
}
