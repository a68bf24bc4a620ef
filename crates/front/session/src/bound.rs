//! Bound statements: prepared ones with the values of their parameters, as Bind leaves them for Execute.

use std::sync::Arc;

use binder::Planned;
use catalog::CatalogState;
use session_context::ScalarValue;
use types::SqlError;

use crate::kept_program::KeptProgram;

/// The values of a prepared statement's parameters, and what was planned for them.
pub(crate) struct Bound {
    pub(crate) values: Vec<ScalarValue>,
    pub(crate) plan: BoundPlan,
}

/// The plan that Bind made; it is checked again when it runs.
pub(crate) enum BoundPlan {
    /// It runs by the program of its statement.
    Program(Arc<KeptProgram>),
    /// It has a plan, which was made on a state of the catalog.
    Plan(Box<Planned>, Arc<CatalogState>),
    /// It could not be planned, maybe because it was committed before under its token.
    Failed(Box<SqlError>),
}
