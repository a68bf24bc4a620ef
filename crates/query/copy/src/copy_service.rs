//! The service that runs COPY FROM and COPY TO.

use std::sync::Arc;

use dml::DmlExecutor;
use executor::Executor;
use types::{Clock, Random};

/// Service that runs COPY FROM and COPY TO.
#[derive(Debug)]
pub struct CopyService {
    pub(super) executor: Arc<Executor>,
    /// Writer of the rows of COPY FROM.
    pub(super) dml: Arc<DmlExecutor>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
}

impl CopyService {
    /// Creates a service that runs queries on `executor` and writes rows with `dml`; `clock` and `random` are used for
    /// object storage at URLs.
    #[must_use]
    pub fn new(executor: Arc<Executor>, dml: Arc<DmlExecutor>, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { executor, dml, clock, random }
    }
}
