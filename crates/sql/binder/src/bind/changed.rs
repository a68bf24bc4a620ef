//! The table that a statement changes.

use std::sync::Arc;

use catalog::Table;
use datafusion::sql::sqlparser::ast::Ident;

/// The table that a statement changes, under its name within the statement.
pub(crate) struct Changed<'a> {
    pub(crate) table: &'a Arc<Table>,
    /// The name of its schema.
    pub(crate) schema: &'a str,
    pub(crate) alias: Option<&'a Ident>,
}
