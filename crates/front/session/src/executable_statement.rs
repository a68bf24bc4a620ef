//! Statements to execute, in the two forms in which clients send them.

use std::sync::Arc;

use syntax::ParsedStatement;

use crate::bound_statement::BoundStatement;
use crate::prepared_statement::PreparedStatement;

/// Statement to execute.
#[derive(Clone, Copy)]
pub(crate) enum Executable<'a> {
    /// Statement of a simple query.
    Text(&'a Arc<ParsedStatement>),
    /// Prepared statement with the values that Bind gave to its parameters.
    Bound(&'a PreparedStatement, &'a BoundStatement),
}

impl Executable<'_> {
    /// Returns the parsed statement; `None` for an empty query string.
    pub(crate) fn parsed(&self) -> Option<&Arc<ParsedStatement>> {
        match self {
            Self::Text(parsed) => Some(parsed),
            Self::Bound(prepared, _) => prepared.parsed.as_ref(),
        }
    }
}
