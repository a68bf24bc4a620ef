//! The two forms in which a client asks for a statement to be executed.

use std::sync::Arc;

use syntax::Parsed;

use crate::bound::Bound;
use crate::prepared::Prepared;

/// A statement to execute.
#[derive(Clone, Copy)]
pub(crate) enum Executable<'a> {
    /// A statement of a simple query.
    Text(&'a Arc<Parsed>),
    /// A prepared statement, as Bind has left it.
    Bound(&'a Prepared, &'a Bound),
}

impl Executable<'_> {
    /// The parsed statement; `None` for an empty query string.
    pub(crate) fn parsed(&self) -> Option<&Arc<Parsed>> {
        match self {
            Self::Text(parsed) => Some(parsed),
            Self::Bound(prepared, _) => prepared.parsed.as_ref(),
        }
    }
}
