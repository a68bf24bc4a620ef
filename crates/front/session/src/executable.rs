//! What a client has asked to be executed.

use std::sync::Arc;

use syntax::Parsed;

use crate::bound::Bound;
use crate::prepared::Prepared;

/// What is to be executed.
#[derive(Clone, Copy)]
pub(crate) enum Executable<'a> {
    /// A statement of a simple query.
    Text(&'a Arc<Parsed>),
    /// A prepared statement, as Bind has left it.
    Bound(&'a Prepared, &'a Bound),
}

impl Executable<'_> {
    /// What it was parsed into; `None` for an empty query string.
    pub(crate) fn parsed(&self) -> Option<&Arc<Parsed>> {
        match self {
            Self::Text(parsed) => Some(parsed),
            Self::Bound(prepared, _) => prepared.parsed.as_ref(),
        }
    }
}
