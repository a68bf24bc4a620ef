//! Name lookup for values of the `reg…` types.

use std::fmt;

use crate::{SqlError, SqlResult, SqlType};

/// Names of catalog objects as visible to one statement, for printing and parsing values of the `reg…` types.
pub trait ObjectNames: fmt::Debug + Send + Sync {
    /// Returns the text of object `oid` as a value of `sql_type` (`regclass`, `regtype`, …): its name, `-` for 0, or
    /// the number of an unknown object.
    fn format(&self, sql_type: &SqlType, oid: u32) -> String;

    /// Parses `text` as a value of `sql_type`: a name, the number itself, or `-` for 0.
    ///
    /// # Errors
    /// The condition for an unknown or ambiguous name of that type, such as `42P01` for a relation; `XX000` without a
    /// catalog.
    fn parse(&self, sql_type: &SqlType, _text: &str) -> SqlResult<u32> {
        Err(SqlError::internal(format!("cannot look up a {sql_type} by name: no catalog is available here")))
    }
}
