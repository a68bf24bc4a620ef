//! Where a query runs.

use std::fmt;

use url::Url;

use crate::reason::Reason;

/// Where a query runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spread {
    /// In stages on so many workers.
    Workers(usize),
    /// As a whole on this one.
    Worker(Url),
    /// In the instance, for this reason.
    Instance(Reason),
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers(count) => write!(f, "on {count} workers"),
            Self::Worker(worker) => write!(f, "as a whole on {}", worker.authority()),
            Self::Instance(reason) => write!(f, "in the instance, because {reason}"),
        }
    }
}
