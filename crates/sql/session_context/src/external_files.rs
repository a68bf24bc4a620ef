//! Files of external tables, as a statement is planned with them.

use std::sync::Arc;

use catalog::TableRows;
use shards::ShardReader;
use types::SqlType;

/// Rows of an external table: its files as listed for the statement.
#[derive(Debug, Clone)]
pub struct ListedFiles {
    pub rows: Arc<TableRows>,
    /// Opened files, one for each shard of `rows`.
    pub readers: Arc<[ShardReader]>,
}

impl ListedFiles {
    /// Creates the rows of opened files.
    #[must_use]
    pub fn new(readers: Vec<ShardReader>) -> Self {
        let files: Vec<_> = readers.iter().map(|reader| Arc::clone(reader.meta())).collect();
        Self { rows: Arc::new(TableRows::from_files(&files)), readers: readers.into() }
    }
}

/// Column that all files of a location have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileColumn {
    pub name: String,
    pub sql_type: SqlType,
}
