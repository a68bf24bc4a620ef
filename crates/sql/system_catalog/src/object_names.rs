//! Names of catalog objects, which values of the `reg…` types are parsed from and displayed as.

use std::sync::Arc;

use session_context::{EvaluationContext, StatementContext};
use types::{ObjectNames, SqlResult, SqlType};

use super::row_source::VisibleRelations;
use super::system_functions::{display_name, parse_object_name};
use super::table_definition::SystemTables;

/// Names of the objects that one statement sees.
pub struct CatalogNames {
    context: Arc<StatementContext>,
    system_tables: &'static SystemTables,
}

impl CatalogNames {
    pub(super) fn new(context: Arc<StatementContext>, system_tables: &'static SystemTables) -> Self {
        Self { context, system_tables }
    }

    fn relations(&self) -> VisibleRelations<'_> {
        VisibleRelations { context: &self.context, system_tables: self.system_tables }
    }
}

impl ObjectNames for CatalogNames {
    fn format(&self, sql_type: &SqlType, oid: u32) -> String {
        display_name(sql_type, oid, self.relations())
    }

    fn parse(&self, sql_type: &SqlType, text: &str) -> SqlResult<u32> {
        parse_object_name(sql_type, text, self.relations())
    }
}

impl std::fmt::Debug for CatalogNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogNames").field("context", &self.context).finish_non_exhaustive()
    }
}

/// Returns the session data that functions and casts of a statement read, with the names of the objects that it sees.
pub(super) fn session(context: &Arc<StatementContext>, system_tables: &'static SystemTables) -> EvaluationContext {
    EvaluationContext::new(Arc::clone(context), Arc::new(CatalogNames::new(Arc::clone(context), system_tables)))
}
