//! Relations that a statement reads, collected while it is parsed.

use sqlparser::ast::{ObjectName, TableVersion};

/// Relation that a statement reads, with its time-travel clause.
#[derive(Debug, Clone)]
pub struct RelationRead {
    pub name: ObjectName,
    /// `AS OF` clause, if there is one.
    pub version: Option<TableVersion>,
}
