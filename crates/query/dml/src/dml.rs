//! The service that runs statements that change or lock rows.

use std::sync::Arc;

use bulk_load::Loader;
use executor::Executor;
use scan::KeyLookup;

/// Service that runs INSERT, UPDATE, DELETE, MERGE and queries that lock rows.
///
/// It stages changes in the statement's transaction; the session commits.
#[derive(Debug)]
pub struct DmlExecutor {
    pub(crate) executor: Arc<Executor>,
    pub(crate) lookup: Arc<KeyLookup>,
    pub(crate) loader: Loader,
}

impl DmlExecutor {
    /// Creates a service that runs plans on `executor`, finds rows with `lookup` and writes shards with `loader`.
    #[must_use]
    pub fn new(executor: Arc<Executor>, lookup: Arc<KeyLookup>, loader: Loader) -> Self {
        Self { executor, lookup, loader }
    }
}
