//! The reasons for which a worker is ended.

use std::fmt;

/// Why a worker is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Nothing runs on it any more.
    Drained,
    /// Its statements have had their time to end.
    GraceOver,
    /// It is not needed, and had not come up yet.
    Unwanted,
    /// It runs another version, and had not come up yet.
    OtherVersion,
    /// It did not join in time.
    NotStarted,
    /// It does not answer.
    Hung,
}

impl StopReason {
    /// Whether the worker failed, so that its slot waits before the next one.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::NotStarted | Self::Hung)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drained => "drained",
            Self::GraceOver => "drained for as long as it may",
            Self::Unwanted => "not needed",
            Self::OtherVersion => "another version",
            Self::NotStarted => "did not join in time",
            Self::Hung => "did not answer",
        })
    }
}
