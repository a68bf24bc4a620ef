//! Names for the numbers of catalog objects.

use std::fmt;

use crate::{SqlError, SqlResult, SqlType};

/// The names of objects in the catalog that one statement sees: values of the `reg…` types are shown and read by them.
pub trait ObjectNames: fmt::Debug + Send + Sync {
    /// The name of object `oid` as a value of `sql_type` (`regclass`, `regtype`, …) shows it: `-` for none, the number of
    /// what is unknown.
    fn show(&self, sql_type: &SqlType, oid: u32) -> String;

    /// The number of the object that `text` names as a value of `sql_type`; digits are the number itself, `-` is none.
    ///
    /// # Errors
    /// The condition of an unknown or ambiguous name of that kind, as `42P01` of a relation; `XX000` for names without a catalog.
    fn read(&self, sql_type: &SqlType, _text: &str) -> SqlResult<u32> {
        Err(SqlError::internal(format!("a {sql_type} is read by its name, and the session has no catalog")))
    }
}
