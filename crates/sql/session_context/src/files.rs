//! Files that others write, which external tables are made of: what a statement is planned with.

use std::sync::Arc;

use catalog::TableRows;
use shards::ShardReader;
use types::SqlType;

/// The rows of an external table: its files as they were listed for the statement.
#[derive(Debug, Clone)]
pub struct ListedFiles {
    pub rows: Arc<TableRows>,
    /// The files, opened: one for each shard of `rows`.
    pub readers: Arc<[ShardReader]>,
}

impl ListedFiles {
    /// The rows of these files.
    #[must_use]
    pub fn new(readers: Vec<ShardReader>) -> Self {
        let files: Vec<_> = readers.iter().map(|reader| Arc::clone(reader.meta())).collect();
        Self { rows: Arc::new(TableRows::of_files(&files)), readers: readers.into() }
    }
}

/// A column that all files of a place have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileColumn {
    pub name: String,
    pub sql_type: SqlType,
}
