//! Relations that a statement reads, noted while it is parsed.

use sqlparser::ast::{ObjectName, TableVersion};

/// A relation that a statement reads.
#[derive(Debug, Clone)]
pub struct RelationRead {
    pub name: ObjectName,
    /// AS OF.
    pub version: Option<TableVersion>,
}
