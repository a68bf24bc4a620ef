//! Inputs of planning beside the catalog: determined and fetched before the statement is bound.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::Table;
use types::{Oid, SqlError, SqlResult, TimeTravelTarget};

use crate::external_files::{FileColumn, ListedFiles};
use crate::time_travel::{HistoricalState, LastDrop};

/// Inputs that a statement needs and that are not fetched yet.
#[derive(Debug, Default)]
pub struct MissingInputs {
    /// Moments whose catalog state is needed.
    pub moments: HashSet<TimeTravelTarget>,
    /// External tables whose files must be listed.
    pub external_tables: HashMap<Oid, Arc<Table>>,
    /// Location whose files determine the columns of a new external table.
    pub location: Option<String>,
    /// Drop that UNDROP reverts, determined when the statement begins.
    pub last_drop: Option<LastDrop>,
}

impl MissingInputs {
    /// Returns whether nothing is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
            && self.external_tables.is_empty()
            && self.location.is_none()
            && self.last_drop.is_none()
    }
}

/// Inputs that were fetched for a statement.
///
/// A failure to fetch is reported only when binding uses the input: the statement may be wrong for another reason, or
/// not need the input after all.
#[derive(Debug, Clone, Default)]
pub struct FetchedInputs {
    /// Catalog states for AS OF and UNDROP, by moment.
    pub states: HashMap<TimeTravelTarget, SqlResult<HistoricalState>>,
    /// Files of external tables.
    pub files: HashMap<Oid, SqlResult<ListedFiles>>,
    /// Columns of the files at a location.
    pub columns: HashMap<String, SqlResult<Arc<[FileColumn]>>>,
    /// Drop that UNDROP reverts.
    pub last_drop: Option<LastDrop>,
}

impl FetchedInputs {
    /// Returns whether nothing was fetched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty() && self.files.is_empty() && self.columns.is_empty() && self.last_drop.is_none()
    }

    /// Returns the catalog state at a moment.
    ///
    /// # Errors
    /// The failure to fetch it, such as `72000` for a moment before the retention; `XX000` if it was not requested.
    pub fn state(&self, moment: TimeTravelTarget) -> SqlResult<HistoricalState> {
        fetched_or_error(self.states.get(&moment), "catalog states for AS OF")
    }

    /// Returns the files of an external table.
    ///
    /// # Errors
    /// The failure to list them; `XX000` if they were not requested.
    pub fn files_of(&self, table: Oid) -> SqlResult<ListedFiles> {
        fetched_or_error(self.files.get(&table), "the files of an external table")
    }

    /// Returns the columns of the files at a location.
    ///
    /// # Errors
    /// The failure to read them; `XX000` if they were not requested.
    pub fn columns_at(&self, location: &str) -> SqlResult<Arc<[FileColumn]>> {
        fetched_or_error(self.columns.get(location), "the columns of the external files")
    }
}

fn fetched_or_error<T: Clone>(found: Option<&SqlResult<T>>, what: &str) -> SqlResult<T> {
    found.cloned().unwrap_or_else(|| {
        Err(SqlError::internal(format!("{what} were read by planning but had not been fetched before it")))
    })
}
