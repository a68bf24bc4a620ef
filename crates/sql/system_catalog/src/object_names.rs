//! The names of catalog objects, which values of the `reg…` types are shown and read by.

use std::sync::Arc;

use session_context::{Session, StatementContext};
use types::{ObjectNames, SqlResult, SqlType};

use super::system_functions::{read_name, show_name};

/// The names of the objects that one statement sees.
#[derive(Debug)]
pub struct CatalogNames {
    context: Arc<StatementContext>,
}

impl CatalogNames {
    /// The names in the statement's catalog, on its search path.
    #[must_use]
    pub fn new(context: Arc<StatementContext>) -> Self {
        Self { context }
    }
}

impl ObjectNames for CatalogNames {
    fn show(&self, sql_type: &SqlType, oid: u32) -> String {
        show_name(sql_type, oid, &self.context)
    }

    fn read(&self, sql_type: &SqlType, text: &str) -> SqlResult<u32> {
        read_name(sql_type, text, &self.context)
    }
}

/// The facts of a statement that its functions and casts read, with the names of the objects that it sees.
#[must_use]
pub fn session(context: &Arc<StatementContext>) -> Session {
    Session::new(Arc::clone(context), Arc::new(CatalogNames::new(Arc::clone(context))))
}
