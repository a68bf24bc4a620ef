//! Files that others write, which external tables are made of: what a statement is planned with.

use std::fmt::Debug;
use std::sync::Arc;

use catalog::{Table, TableRows};
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

/// Where a statement finds what it has to know of files.
pub trait Files: Debug + Send + Sync {
    /// The files of an external table. `None` where they are not at hand: planning fails then, and whoever plans lists them and plans again.
    fn of_table(&self, table: &Arc<Table>) -> Option<ListedFiles>;

    /// The columns of the files at a place; `None` as for [`Files::of_table`].
    fn columns(&self, location: &str) -> Option<Arc<[FileColumn]>>;
}

/// For statements that are planned without rows: no file has any.
#[derive(Debug)]
pub struct WithoutRows(pub Arc<dyn Files>);

impl Files for WithoutRows {
    fn of_table(&self, _table: &Arc<Table>) -> Option<ListedFiles> {
        Some(ListedFiles::new(Vec::new()))
    }

    fn columns(&self, location: &str) -> Option<Arc<[FileColumn]>> {
        self.0.columns(location)
    }
}

/// No files, for tests and tools.
#[derive(Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn of_table(&self, _table: &Arc<Table>) -> Option<ListedFiles> {
        None
    }

    fn columns(&self, _location: &str) -> Option<Arc<[FileColumn]>> {
        None
    }
}
