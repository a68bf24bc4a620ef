//! The files of external tables that a statement reads: listed once for it, so that it sees one moment of them.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Table;
use external_files::ExternalFiles;
use parking_lot::Mutex;
use session_context::{FileColumn, Files, ListedFiles};
use types::{Oid, SqlResult};

/// Those of one statement: the planner asks, the session lists what is not there and lets it plan again.
#[derive(Debug, Default)]
pub(crate) struct StatementFiles {
    tables: Mutex<HashMap<Oid, ListedFiles>>,
    columns: Mutex<HashMap<String, Arc<[FileColumn]>>>,
    wanted: Mutex<Option<Wanted>>,
}

/// What the planner has asked for.
#[derive(Debug)]
pub(crate) enum Wanted {
    Table(Arc<Table>),
    /// The columns of the files at a location.
    Columns(String),
}

impl StatementFiles {
    /// The statement is over: who still reads files holds them.
    pub(crate) fn forget(&self) {
        self.tables.lock().clear();
        self.columns.lock().clear();
        *self.wanted.lock() = None;
    }

    pub(crate) fn take_wanted(&self) -> Option<Wanted> {
        self.wanted.lock().take()
    }

    /// Lists what is wanted.
    pub(crate) async fn list(&self, wanted: Wanted, external: &ExternalFiles) -> SqlResult<()> {
        match wanted {
            Wanted::Table(table) => {
                let listed = external.list(&table).await?;
                self.tables.lock().insert(table.oid, listed);
            }
            Wanted::Columns(location) => {
                let columns = external.columns_at(&location).await?;
                self.columns.lock().insert(location, columns);
            }
        }
        Ok(())
    }
}

impl Files for StatementFiles {
    fn of_table(&self, table: &Arc<Table>) -> Option<ListedFiles> {
        let known = self.tables.lock().get(&table.oid).cloned();
        if known.is_none() {
            *self.wanted.lock() = Some(Wanted::Table(Arc::clone(table)));
        }
        known
    }

    fn columns(&self, location: &str) -> Option<Arc<[FileColumn]>> {
        let known = self.columns.lock().get(location).map(Arc::clone);
        if known.is_none() {
            *self.wanted.lock() = Some(Wanted::Columns(location.to_owned()));
        }
        known
    }
}
