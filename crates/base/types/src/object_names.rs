//! Names for the numbers of catalog objects.

use std::fmt;

use crate::SqlType;

/// What values of the `reg…` types print, by the catalog that one statement sees.
pub trait ObjectNames: fmt::Debug + Send + Sync {
    /// The name of object `oid` as a value of `sql_type` (`regclass`, `regtype`, …) shows it: `-` for none, the number of
    /// what is unknown.
    fn show(&self, sql_type: &SqlType, oid: u32) -> String;
}
