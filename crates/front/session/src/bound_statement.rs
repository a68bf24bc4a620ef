//! Bound statements: prepared statements with the values that Bind gave to their parameters.

use std::sync::Arc;

use binder::StatementPlan;
use catalog::CatalogState;
use session_context::ScalarValue;
use types::SqlError;

use crate::cached_key_lookups::CachedKeyLookup;

/// Values of a prepared statement's parameters, with the plan for them.
pub(crate) struct BoundStatement {
    pub(crate) values: Vec<ScalarValue>,
    pub(crate) plan: BoundPlan,
}

/// Plan made by Bind; its validity is checked when it runs.
pub(crate) enum BoundPlan {
    /// Compiled key lookup of the prepared statement.
    KeyLookup(Arc<CachedKeyLookup>),
    /// Plan, with the state of the catalog that it was made on.
    Plan(Box<StatementPlan>, Arc<CatalogState>),
    /// Planning error, which is reported only if the statement does not turn out to have been committed under its token
    /// before.
    Failed(Box<SqlError>),
}
