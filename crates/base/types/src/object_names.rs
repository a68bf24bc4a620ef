//! Names for the numbers of catalog objects.

use std::fmt;

use crate::{SqlError, SqlResult, SqlType};

/// The names of objects in the catalog that one statement sees: values of the `reg…` types are shown and read by them.
pub trait ObjectNames: fmt::Debug + Send + Sync {
    /// The name of object `oid` as a value of `sql_type` (`regclass`, `regtype`, …) shows it: `-` for none, the number of
    /// what is unknown.
    fn show(&self, sql_type: &SqlType, oid: u32) -> String;

    /// The number of the object that `text` names as a value of `sql_type`; digits are the number itself.
    ///
    /// # Errors
    /// The condition of the object's kind where nothing or more than one thing has the name; `XX000` where there is no catalog.
    fn read(&self, sql_type: &SqlType, text: &str) -> SqlResult<u32> {
        let _ = (sql_type, text);
        Err(SqlError::internal("a name is read without a catalog"))
    }
}
