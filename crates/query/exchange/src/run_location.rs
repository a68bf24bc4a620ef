//! Execution location of a query, as EXPLAIN shows it.

use std::fmt;

use url::Url;

use crate::check_distributable::LocalReason;

/// Execution location of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunLocation {
    /// In stages on this many workers.
    Workers(usize),
    /// As a single task on this worker.
    SingleWorker(Url),
    /// In the instance, for this reason.
    Instance(LocalReason),
}

impl fmt::Display for RunLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers(count) => write!(f, "on {count} workers"),
            Self::SingleWorker(worker) => write!(f, "as a whole on {}", worker.authority()),
            Self::Instance(reason) => write!(f, "in the instance, because {reason}"),
        }
    }
}
