//! The service that runs statements that change rows.

use std::sync::Arc;

use bulk_load::Loader;
use executor::Executor;
use scan::KeyLookup;

/// Runs INSERT, UPDATE, DELETE, MERGE and queries that lock rows: what they change it stages; the commit is the session's.
#[derive(Debug)]
pub struct Dml {
    pub(crate) executor: Arc<Executor>,
    pub(crate) lookup: Arc<KeyLookup>,
    pub(crate) loader: Loader,
}

impl Dml {
    /// A service whose plans run on `executor`, and whose shards `loader` writes.
    #[must_use]
    pub fn new(executor: Arc<Executor>, lookup: Arc<KeyLookup>, loader: Loader) -> Self {
        Self { executor, lookup, loader }
    }
}
