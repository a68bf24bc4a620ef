//! Inputs of planning that the catalog does not have: they are found before the statement is bound, fetched, and bound with it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::Table;
use types::{Moment, Oid, SqlError, SqlResult};

use crate::files::{FileColumn, ListedFiles};
use crate::past::{LastDrop, PastState};

/// Inputs that a statement needs and does not have yet.
#[derive(Debug, Default)]
pub struct MissingInputs {
    /// Moments whose state is to be found.
    pub moments: HashSet<Moment>,
    /// External tables whose files are to be listed.
    pub external_tables: HashMap<Oid, Arc<Table>>,
    /// The place whose files say which columns a new table has.
    pub location: Option<String>,
    /// The drop that UNDROP takes back: what it is when the statement begins.
    pub last_drop: Option<LastDrop>,
}

impl MissingInputs {
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
            && self.external_tables.is_empty()
            && self.location.is_none()
            && self.last_drop.is_none()
    }
}

/// Inputs that were fetched for a statement. A failure is told to the first who asks for what could not be had: the statement may be
/// wrong for another reason, or not need it after all.
#[derive(Debug, Clone, Default)]
pub struct FetchedInputs {
    /// The states of AS OF.
    pub states: HashMap<Moment, SqlResult<PastState>>,
    /// The files of external tables.
    pub files: HashMap<Oid, SqlResult<ListedFiles>>,
    /// The columns of the files at a place.
    pub columns: HashMap<String, SqlResult<Arc<[FileColumn]>>>,
    /// The drop that UNDROP takes back.
    pub last_drop: Option<LastDrop>,
}

impl FetchedInputs {
    /// Whether nothing was fetched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty() && self.files.is_empty() && self.columns.is_empty() && self.last_drop.is_none()
    }

    /// The state at a moment.
    ///
    /// # Errors
    /// Why it cannot be had, such as `72000` for one before the retention; `XX000` where nobody has looked for it.
    pub fn state(&self, moment: Moment) -> SqlResult<PastState> {
        fetched(self.states.get(&moment), "the state of an earlier moment")
    }

    /// The files of an external table.
    ///
    /// # Errors
    /// Why they cannot be listed; `XX000` where nobody has looked for them.
    pub fn files_of(&self, table: Oid) -> SqlResult<ListedFiles> {
        fetched(self.files.get(&table), "the files of an external table")
    }

    /// The columns of the files at a place.
    ///
    /// # Errors
    /// Why they cannot be read; `XX000` where nobody has looked for them.
    pub fn columns_at(&self, location: &str) -> SqlResult<Arc<[FileColumn]>> {
        fetched(self.columns.get(location), "the columns of the files")
    }
}

fn fetched<T: Clone>(found: Option<&SqlResult<T>>, what: &str) -> SqlResult<T> {
    found.cloned().unwrap_or_else(|| Err(SqlError::internal(format!("nobody fetched {what} before planning"))))
}
