//! The service that runs COPY, both ways.

use std::sync::Arc;

use dml::Dml;
use executor::Executor;
use types::{Clock, Random};

/// Runs COPY FROM and COPY TO.
#[derive(Debug)]
pub struct Copier {
    pub(super) executor: Arc<Executor>,
    /// Writes the rows of COPY FROM.
    pub(super) dml: Arc<Dml>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
}

impl Copier {
    /// A service whose queries run on `executor`, and whose rows `dml` writes; clock and chance are for the object storage that statements name.
    #[must_use]
    pub fn new(executor: Arc<Executor>, dml: Arc<Dml>, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { executor, dml, clock, random }
    }
}
