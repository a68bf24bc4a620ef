//! Statements to execute, in the two forms in which clients send them.

use std::sync::Arc;

use syntax::Parsed;

use crate::bound::Bound;
use crate::prepared::Prepared;

/// Statement to execute.
#[derive(Clone, Copy)]
pub(crate) enum Executable<'a> {
    /// Statement of a simple query.
    Text(&'a Arc<Parsed>),
    /// Prepared statement with the values that Bind gave to its parameters.
    Bound(&'a Prepared, &'a Bound),
}

impl Executable<'_> {
    /// Returns the parsed statement; `None` for an empty query string.
    pub(crate) fn parsed(&self) -> Option<&Arc<Parsed>> {
        match self {
            Self::Text(parsed) => Some(parsed),
            Self::Bound(prepared, _) => prepared.parsed.as_ref(),
        }
    }
}
